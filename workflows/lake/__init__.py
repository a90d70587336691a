"""Workflows for queries about the lake."""
