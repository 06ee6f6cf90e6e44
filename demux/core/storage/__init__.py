"""The one way to files and tables: folders of this machine, S3, Azure, GCS."""
