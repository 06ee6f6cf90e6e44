"""The costs of the design, as ratios against the naive one in the same run."""
