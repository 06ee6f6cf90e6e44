"""What the design costs, as ratios against the naive one measured in the same run."""
