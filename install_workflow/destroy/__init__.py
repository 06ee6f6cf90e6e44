"""What `demux destroy` removes from a root."""
