"""Removal of a root's folders by `demux destroy`."""
