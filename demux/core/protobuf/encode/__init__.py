"""Typed columns to Protobuf payloads: the column rules the other way round."""
