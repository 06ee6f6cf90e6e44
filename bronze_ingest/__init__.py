"""BRONZE: one stream from wrapper bytes to bronze, partitioned by game, or to quarantine."""
