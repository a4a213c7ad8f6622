"""The deriver that makes records of prose: each value stands in the response, or it is left out."""
