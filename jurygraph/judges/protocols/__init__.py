"""DecompR's scoring protocols (Appendix A.2): a response judged as a whole, by dimensions, by a checklist, or by
person."""
