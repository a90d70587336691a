"""Conversion of values, and rules about types of columns. Imports no reader of files."""
