"""Import checks from the tests of dbt, the expectations of Great Expectations, and the checks of SodaCL.

Each test becomes a check of Sluice, or a query that returns the bad rows if no check has the same meaning.
A test that can become neither is listed with its file, its line and the reason.
"""
