"""The settings: sections, types, and the checks between them."""
