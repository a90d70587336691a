"""Activities for approvals and waivers."""
