"""The measurements, one file each."""
