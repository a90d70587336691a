"""Readers of source files: their columns, types, rows and unreadable rows."""
