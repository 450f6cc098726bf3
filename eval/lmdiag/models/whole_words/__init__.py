"""Unit `word`: the most probable complete words at a blank, by an exact search."""
