"""MACRM's Data Optimizer: how concise a response is, and how much it differs from its group. Computed by code."""
