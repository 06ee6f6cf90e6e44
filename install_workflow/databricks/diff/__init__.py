"""The difference between the jobs that are there and those that are wanted."""
