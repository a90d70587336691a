"""Publications on main, and the versions of tables that they made."""
