"""DecompR's scoring protocols (Appendix A.2): a response judged as a whole, by dimension, by checklist or by person."""
