"""The fields of the JSON that each command prints; docs/reference/json.md is made from them."""
