"""Calls to a workspace, by databricks-sdk."""
