"""Decides what happens to rows of each schema, and decodes them: by Arrow, or by Spark's from_protobuf."""
