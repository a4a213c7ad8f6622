"""The Quality Assessor (MACRM): checks a response's reasoning step by step, up to the first unsound step."""
