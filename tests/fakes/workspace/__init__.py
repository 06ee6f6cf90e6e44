"""A Databricks workspace on 127.0.0.1, as far as we use one, with the server's own ways."""
