"""How a model is asked: settings and their rules, rows to questions, ways of asking."""
