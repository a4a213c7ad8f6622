"""How a run comes to be or to change: scored, branched, decided anew, brought over, and freed of texts."""
