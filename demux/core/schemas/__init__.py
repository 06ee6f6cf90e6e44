"""The schemas in use: how a row names its schema, and the table that keeps them."""
