"""Formats of other projects, and of ours, in both directions: one small module each, and a registry of them."""
