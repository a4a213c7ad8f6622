"""DecompR's stability study: how far a reward changes when the same response is presented in another way."""
