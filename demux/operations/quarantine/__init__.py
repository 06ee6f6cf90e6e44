"""The records that were set aside: looked at without Spark, and dropped for good by Spark."""
