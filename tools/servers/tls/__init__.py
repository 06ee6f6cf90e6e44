"""Certificates and logins of the servers."""
