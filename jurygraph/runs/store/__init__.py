"""Storage of a run: hash-chained records and their texts in a ledger, with one writer at a time."""
