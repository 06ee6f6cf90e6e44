"""Carries out a plan: lock, wheel, settings files, jobs."""
