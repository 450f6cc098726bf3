"""A user's table to rows, in named steps; knows nothing of what is proposed."""
