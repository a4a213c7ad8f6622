"""DecompR's scoring protocols (Appendix A.2): a response judged whole, by dimensions, by a list, or by people."""
