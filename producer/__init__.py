"""WIRE: a simulator that sends seeded events of many games and schema versions, faults included."""
