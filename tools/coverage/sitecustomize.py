"""Lets every Python process of a run be measured: pytest's workers, commands, and Spark's Python workers."""

import coverage

coverage.process_startup()
