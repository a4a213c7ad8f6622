"""The Quality Assessor (MACRM): whether a response's reasoning holds, step by step, and where it first does not."""
