"""The next checkpoint of a Delta log, made from the one before and the commits since."""
