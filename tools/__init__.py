"""Development tools: setup, real servers for tests, demo and benchmark, the runbook."""
