"""Models that read texts and write none: embedders, which give vectors, and rerankers, which score documents."""
