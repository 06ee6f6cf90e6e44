"""How far a game has read bronze, and which files it has still to read."""
