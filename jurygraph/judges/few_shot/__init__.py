"""Judges that are shown a few rated items: of nobody, of other reviewers, or of the reviewer they stand for."""
