"""Servers that are built from Go modules: how, and the collector of OpenTelemetry."""
