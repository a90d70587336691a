"""Receivers of notifications that files arrived: each has the landing zones that it concerns looked at soon."""
