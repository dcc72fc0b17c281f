"""Judge replies of systems by a model and by people, and measure how well these agree."""
