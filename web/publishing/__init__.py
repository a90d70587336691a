"""Roll-backs on the page."""
