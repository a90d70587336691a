"""Spark as a supervised process: found, configured, started, watched, ended."""
