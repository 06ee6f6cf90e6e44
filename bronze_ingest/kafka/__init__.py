"""Kafka topics as the source of bronze: preflight, offsets, lost ranges."""
