"""Commands that move data: produce, ingest, deserialize, run, demo."""
