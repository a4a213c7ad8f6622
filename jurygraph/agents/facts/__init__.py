"""Facts: claims read from a response's data and looked up in tables or tools."""
