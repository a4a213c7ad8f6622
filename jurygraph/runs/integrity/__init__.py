"""What can be shown of a run: to oneself, by computing everything again, and to others, by a seal and a bundle."""
