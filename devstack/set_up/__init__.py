"""Set-up: install everything that Sluice needs under `.venv` and `.sluice`, independent steps side by side.

It runs before anything is installed, by the Python of the system, so it imports the standard library alone
(and modules of this project that do the same).
"""
