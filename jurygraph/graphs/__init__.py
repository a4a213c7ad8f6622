"""State machines: prepare turns a task into a plan, score turns a plan and responses into rewards, and annotate, a part
of prepare that can also run alone, adds a graph to a rubric."""
