"""A real S3 server, and a proxy before it that adds latency and faults."""
