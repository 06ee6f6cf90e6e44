"""A streaming query for one game."""
