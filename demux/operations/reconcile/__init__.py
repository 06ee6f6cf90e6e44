"""The ledger: every record that came in is in exactly one place, proved from the tables."""
