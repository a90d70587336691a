"""Workflows for schedules."""
