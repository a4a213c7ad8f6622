"""Turn models into the sentences and tables that the commands print."""
