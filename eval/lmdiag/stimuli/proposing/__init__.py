"""The options that may read a table of an unknown layout, and what other tables are."""
