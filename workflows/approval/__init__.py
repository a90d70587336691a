"""Approvals and waivers."""
