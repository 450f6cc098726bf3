"""Models behind an OpenAI-compatible completions endpoint: nothing of the model is in this process.

`served` implements `lmdiag.models.Model`. It sends prompts (`prompts`) by HTTP (`client`), reads
what engines answer in their dialects (`dialects`), and refuses an engine whose numbers cannot be
used (`checks`). `alignment` says which of the server's tokens belong to which characters.
"""
