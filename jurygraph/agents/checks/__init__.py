"""Checks: constraints that a task states, decided by arithmetic over what was looked up."""
