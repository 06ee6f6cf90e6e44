"""The stages put together: the one place that imports all of them; nothing here prints."""
