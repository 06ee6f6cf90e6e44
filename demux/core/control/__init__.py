"""The control tables: games, rounds, deployments."""
