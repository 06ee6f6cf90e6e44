"""Commands that only look: status, show, serve, reconcile, schemas."""
