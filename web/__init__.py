"""The page: a web server for people who own tables. Its only server is Temporal."""
