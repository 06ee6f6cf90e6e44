"""The settings of a Databricks workspace: its jobs, their compute, and who may do what with them."""
