"""The difference between the deployed and the wanted jobs."""
