"""What each command is called with, and its help; what it does is in the modules beside, and loaded when it runs.

So `--help` and completion load nothing that reads, writes or computes.
"""
