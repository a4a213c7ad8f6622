"""Judges that are shown a few rated items: none, those of other reviewers, or those of the reviewer they predict."""
