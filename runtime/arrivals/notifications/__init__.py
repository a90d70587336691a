"""Receivers of notifications that files arrived. Each makes the landing zones of these files list them soon."""
