"""Queries about the lake."""
