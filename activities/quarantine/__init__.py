"""Activities for quarantined branches and rows."""
