"""Column types, and what they are in Arrow and in Spark."""
