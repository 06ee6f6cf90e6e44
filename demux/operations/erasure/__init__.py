"""Records removed on request from silver, quarantine and bronze, bytes included (`demux forget`)."""
