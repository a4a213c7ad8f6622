"""Facts: claims read out of a response's data, and looked up in tables or tools."""
