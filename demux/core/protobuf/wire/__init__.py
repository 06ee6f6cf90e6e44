"""The wire format: varints, fields, and payloads that may be broken."""
