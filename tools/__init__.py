"""What developers run beside the product: setting up, real servers for tests, demo and benchmark, the runbook."""
