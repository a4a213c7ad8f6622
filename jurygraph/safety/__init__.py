"""Defences of judges against manipulative responses, and of secrets against disclosure."""
