"""The deterministic aggregation: from a plan and its verdicts to rewards, by arithmetic alone."""
