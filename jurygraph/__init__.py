"""The rewards."""
