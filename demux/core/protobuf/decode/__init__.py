"""Decodes payloads by a schema: in Arrow batches, and by google.protobuf as the reference."""
