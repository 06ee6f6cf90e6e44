"""Commands that change tables again: rebuild, backfill, quarantine, forget and maintain."""
