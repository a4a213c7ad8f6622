"""Pure parts of the maths evaluators. Kept free of imports: the worker process starts through this package."""
