"""Delta tables: log, commits, application transactions, files."""
