"""Small faults that the tests must notice: each is put into a copy of the code, and the test that should fail is run.

How to add one: docs/decisions/0031-seeded-faults.md.
"""
