"""Doors for trainers: each reads what its trainer sends, scores it with a jury, and answers in the trainer's form."""
