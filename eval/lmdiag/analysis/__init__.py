"""What follows a finished run: items as one table, effects of conditions, mixed models."""
