"""Descriptors: compiled schemas, messages, columns, comments and options."""
