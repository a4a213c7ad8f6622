"""Judges that compare responses, always in both orders: pairs, rankings of a group, and their combiners."""
