"""The deriver that extracts records from prose; every value must occur in the response."""
