"""Set-up: install everything that Sluice needs under `.venv` and `.sluice`, with independent steps in parallel.

It runs with the system's Python before anything is installed, so it imports only the standard library (and modules of
this project that do the same).
"""
