"""What the measurements share: roots, events, sizes, pages, plots."""
