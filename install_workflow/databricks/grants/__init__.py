"""Who may read which game's table: wanted, present, applied."""
