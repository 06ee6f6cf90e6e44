"""What a team does with tables afterwards: prove, look, repair, maintain, erase."""
