"""Makes the documentation site: the pages of the repository, and a reference that is made from the code."""
