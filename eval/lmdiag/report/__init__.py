"""What people see of a run: terminal tables, tables for papers, and the HTML report.

| module | does |
| --- | --- |
| `layouts` | which measures stand where, in the shape of the papers' tables |
| `tables` | fills the layouts from `results.json`: plain data, shared by all formats |
| `numbers` | figures as readers see them |
| `terminal` | prints the tables on a terminal |
| `progress` | the one bar of a run |
"""
