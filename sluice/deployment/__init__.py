"""Deployment of the starts without a person that pipeline files state."""
