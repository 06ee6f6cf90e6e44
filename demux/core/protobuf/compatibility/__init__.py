"""The differences between two schemas: on the wire, and in the table."""
