"""Judge the replies of systems by a model and by people, and measure their agreement."""
