"""Figures of a run: costs, outcomes of its verdicts, forecasts, and comparisons with another run."""
