"""Reads files within bounds, writes them atomically, removes secrets from texts."""
