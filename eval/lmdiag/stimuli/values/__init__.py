"""What the values of a column are, known names of columns, levels, and what ends a text."""
