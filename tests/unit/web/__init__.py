"""Tests of the page that need no server."""
