"""Pure parts of the maths evaluators. Kept free of imports, since the worker process starts through this package."""
