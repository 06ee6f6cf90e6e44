"""Calls over HTTP to a registry or a workspace: one client, one set of failures."""
