"""Evaluators of trajectories by code alone: the calls of tools in a conversation, and how it went."""
