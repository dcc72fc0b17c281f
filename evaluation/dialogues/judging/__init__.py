"""Judge what systems said: by a model, by people, and how far they agree."""
