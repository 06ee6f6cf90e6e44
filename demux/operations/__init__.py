"""Operations on the tables: reconcile, status, quarantine, maintenance, erasure."""
