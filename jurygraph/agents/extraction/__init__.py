"""The deriver that makes records of prose: each value stands in the response, or its record is of unknown words."""
