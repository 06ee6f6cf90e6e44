"""The plan in a Databricks workspace: jobs that run every game, what they are and how they get there."""
