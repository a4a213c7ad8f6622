"""How a question reaches a model, and what comes back."""
