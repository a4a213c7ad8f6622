"""Presentations of a structured response in other words or another order, which say the same (DecompR, Table 7)."""
