"""Activities of the audit."""
