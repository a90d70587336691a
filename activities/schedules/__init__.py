"""Activities for schedules."""
