"""MACRM's Data Synthesizer: contrasts of a response, each made worse by one known edit, and their use as a signal."""
