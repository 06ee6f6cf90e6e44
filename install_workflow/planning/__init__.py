"""Which game runs on which cluster."""
