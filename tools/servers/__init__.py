"""A real Kafka broker and a real schema registry on this machine, without Docker: from JVM packages."""
