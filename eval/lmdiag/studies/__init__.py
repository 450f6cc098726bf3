"""What is computed from several runs: comparisons, cloze norms, multiverses."""
