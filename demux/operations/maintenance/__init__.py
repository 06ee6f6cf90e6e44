"""Maintenance of all tables below a root: small files joined, old ones removed, bronze retired by age."""
