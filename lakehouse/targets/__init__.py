"""Targets of registrations: receivers of events, and other catalogs that mirror tables of main."""
