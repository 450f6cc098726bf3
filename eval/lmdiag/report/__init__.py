"""What readers see of a run: tables in several formats, items, charts, and the HTML report."""
