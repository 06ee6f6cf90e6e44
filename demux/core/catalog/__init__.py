"""Registers tables in a catalog, with comments and tags."""
