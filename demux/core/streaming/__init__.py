"""Spark sessions, streaming queries, and their checkpoints."""
