"""Judges that compare responses, always in both orders: pairs, rankings of a group, and what they come to."""
