"""Loads settings from file, environment and command line, and reports all mistakes at once."""
