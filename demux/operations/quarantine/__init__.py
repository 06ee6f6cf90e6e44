"""The records that are in quarantine: looked at without Spark, and dropped for good by Spark."""
