"""A root in an object store against one in a folder."""
