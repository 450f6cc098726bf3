"""Starts the page of lmdiag in a Space of the Hub."""

from lmdiag.app.page import serve

serve(None, "0.0.0.0", 7860, opens=False, on_start=print)  # a Space is reached from outside
