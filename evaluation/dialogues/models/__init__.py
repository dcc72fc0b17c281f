"""The models of an evaluation: who plays the user, replies that are kept, and rules that stand in for a model."""
