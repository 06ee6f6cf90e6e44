"""Makes docs/runbook.md: what each error, cause and exit code means to a person on call, and what to do."""
