"""Commands that change tables again: rebuild, backfill, quarantine, forget, maintain, sessions."""
