"""A schema registry over HTTP, by Confluent's API."""
