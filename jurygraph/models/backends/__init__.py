"""Ways to reach a model."""
