"""Tables under audit, and what remains of an audit: reports and the audit results table."""
