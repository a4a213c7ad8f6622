"""The graph annotator: from a query and its rubric to the graph of criteria that license others (GEAR, App. A)."""
