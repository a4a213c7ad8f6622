"""A comparison of judges of reviewers, with and without a model: "Aggregate vs. Personalized Judges" on your data."""
