"""Slack, as the worker and the page reach it."""
