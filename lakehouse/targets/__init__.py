"""Targets of registrations: receivers of events, and catalogs elsewhere that hold tables as main holds them."""
