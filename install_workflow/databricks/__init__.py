"""The plan in a Databricks workspace: the jobs that run the games, and how they are installed."""
