"""Measurements with a broker."""
