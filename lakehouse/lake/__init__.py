"""Questions of people about the lake: queries and diffs."""
