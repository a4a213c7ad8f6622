"""Mutation testing of the deterministic core: `make mutants`, in no other target."""
