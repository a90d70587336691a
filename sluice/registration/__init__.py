"""Registration after a publish: which targets there are, what they are told, and which tables they hold."""
