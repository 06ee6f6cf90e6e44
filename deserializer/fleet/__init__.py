"""The fleet engine: all active games of a round in one Spark job."""
