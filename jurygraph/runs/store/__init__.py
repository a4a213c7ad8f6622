"""How a run is stored: records chained in a ledger, texts beside the chain, and one writer at a time."""
