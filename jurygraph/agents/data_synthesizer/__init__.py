"""MACRM's Data Synthesizer: contrasts of a response, each worse than it by one stated edit, and what they tell."""
