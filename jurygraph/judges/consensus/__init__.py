"""Consensus of a panel: judges as annotators, with votes weighted by learned confusion matrices (STABLEVAL)."""
