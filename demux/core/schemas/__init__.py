"""The schemas in use: what a row says of its schema, and the table that keeps them."""
