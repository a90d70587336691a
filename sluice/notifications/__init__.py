"""Messages to people: their texts, and the routes that decide who gets which."""
