"""The words and rules that every stage uses."""
