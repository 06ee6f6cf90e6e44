"""Wrappers to a Kafka topic, each acknowledged."""
