"""Shared by the measurements: roots, events, sizes, pages, plots."""
