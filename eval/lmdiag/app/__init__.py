"""A page for those who do not type: from a table to the page of a result, in a browser."""
