"""SILVER: one game's bronze rows to its typed table, or to quarantine."""
