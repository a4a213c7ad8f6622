"""Models that read texts and generate none: embedders, which return vectors, and rerankers, which score documents."""
