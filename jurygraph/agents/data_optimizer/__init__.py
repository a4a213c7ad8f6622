"""MACRM's Data Optimizer: how efficiently a response says what it says, and how much its group differs. By code."""
