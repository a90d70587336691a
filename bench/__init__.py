"""Measurement programs: each compares ways to do the same thing side by side, in one run, and prints ratios."""
