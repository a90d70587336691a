"""Import the tests of dbt: property files, generic tests, and the SQL of a project."""
