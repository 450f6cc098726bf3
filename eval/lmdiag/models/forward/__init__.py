"""Rows of token ids through the network: which rows together, in which layout, in which batch."""
