"""A real Kafka broker, schema registry and S3 server on this machine, without Docker: from packages."""
