"""The jobs of a deployment, built from settings and plan."""
