"""Options and errors of Kafka clients."""
