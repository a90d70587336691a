"""The order of things, deterministic: no clock, no I/O, no environment."""
