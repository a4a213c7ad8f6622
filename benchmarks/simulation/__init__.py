"""Simulations behind the figures of benchmarks and docs: consensus on known truth, and streams for the monitor."""
