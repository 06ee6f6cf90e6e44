"""Protobuf schemas and messages: compiled, described, decoded."""
