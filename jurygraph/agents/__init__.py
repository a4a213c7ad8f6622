"""Derivers and evaluators, and the roles that one's own take on."""
