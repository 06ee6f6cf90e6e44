"""The arguments and the help of each command; its code is in the folders beside, and loaded when it runs.

So `--help` and completion load nothing that reads, writes or computes.
"""
