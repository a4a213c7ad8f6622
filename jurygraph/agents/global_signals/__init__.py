"""MACRM's global signals: scores of a whole response by embedding and reranking models."""
