"""Pictures of rubric graphs: their content, their layout, and the formats in which they are drawn."""
