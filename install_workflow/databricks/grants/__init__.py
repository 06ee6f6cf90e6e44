"""Grants on the games' tables: desired, present, applied."""
