"""One run of one model: what is asked (`inputs`), asking it (`asking`), its files (`run`).

`journal` keeps finished batches, so that an interrupted run resumes; `processes` shares the work
between processes.
"""
