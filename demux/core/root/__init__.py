"""A root: where its tables are, and which command holds it."""
