"""Conditions that people write in SQL's words: parsed, checked against columns, and never pasted into SQL."""
