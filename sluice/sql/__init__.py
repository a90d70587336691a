"""SQL with the same meaning in every scan engine: dialects, literals, regular expressions, users' expressions."""
