"""Runs: folders with a ledger of surveys, decisions, calls and traces, each record chained to the one before it."""
