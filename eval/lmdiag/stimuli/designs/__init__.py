"""The conditions of a design, what looks wrong in it, and what is shown of it."""
