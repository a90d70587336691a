"""Decisions of people about runs."""
