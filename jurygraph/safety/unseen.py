"""Characters that cannot be seen in text."""

UNSEEN = "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
"""A regex class of characters that affect a terminal or a line reader but are invisible to a person."""
