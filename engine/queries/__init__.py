"""Run SQL queries that people wrote, each in a process of its own with limits of memory and time."""
