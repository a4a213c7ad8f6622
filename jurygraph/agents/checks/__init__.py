"""Checks: a task's constraints, decided by arithmetic over looked-up claims and the response's data."""
