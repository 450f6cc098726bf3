"""Models behind an OpenAI-compatible completions endpoint: nothing of the model is in this process.

`served` implements `lmdiag.models.Model`, and `loading` finds and connects it. Prompts (`prompts`)
are sent by HTTP (`client`), and the answers are read in the dialects of engines (`dialects`).
`alignment` says which of the server's tokens belong to which characters, `scoring` makes words of
tokens, and `checks` refuses a server whose numbers cannot be used.
"""
