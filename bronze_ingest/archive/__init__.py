"""Archived wrapper records: files read whole by workers, as a stream of file names."""
