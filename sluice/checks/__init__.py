"""The checks of an audit: their parameters, proofs, queries and verdicts."""
