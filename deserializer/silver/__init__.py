"""A game's silver table and quarantine, written as files or by Spark."""
