"""Expectations that Great Expectations and dbt_expectations share, and the suites of Great Expectations."""
