"""Decodes rows again and replaces them: backfill, rebuild, replay, rescued fields."""
