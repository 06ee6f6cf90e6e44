"""Makes docs/runbook.md: what each error, cause and exit code means to somebody on call, and what to do."""
