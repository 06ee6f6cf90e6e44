"""Real servers of object stores, and a proxy before S3 that adds latency and faults."""
