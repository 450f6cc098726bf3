"""Reads and writes the tables of users, in every format."""
