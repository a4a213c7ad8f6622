"""What the commands print: sentences and tables, from models to text."""
