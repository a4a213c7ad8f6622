"""A panel of judges as annotators: their verdicts fused by how each of them errs (STABLEVAL)."""
