"""Importing checks: the tests of dbt, the expectations of Great Expectations, and the checks of SodaCL.

Each test becomes a check of Sluice, or a query that returns the rows at fault where no check has the same meaning.
What has neither is listed with its file, its line and the reason.
"""
