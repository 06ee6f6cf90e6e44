"""What a catalog has of the tables: each under its name, by which Spark reads and writes it."""
