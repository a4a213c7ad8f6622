"""Verify a run by computing everything again, and prove it to others with a seal and a bundle."""
