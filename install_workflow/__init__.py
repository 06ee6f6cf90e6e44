"""PLAN: which game runs as which task on which cluster, and the engine that runs the plan."""
