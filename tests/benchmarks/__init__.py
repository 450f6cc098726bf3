"""Speed and memory, as ratios measured in one run: `make bench`, or `python -m benchmarks`.

Nothing here is a timed test: machines differ and are shared, so contenders take turns and the
figures are medians of ratios within a round, with the smallest and largest beside them.
"""
