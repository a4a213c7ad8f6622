"""MACRM's global signals: what models that read and do not write say of a response as a whole."""
