"""Models behind an OpenAI-compatible completions endpoint: nothing of the model is in this process.

`served` implements `lmdiag.models.Model`: contexts and words are token ids of the tokenizer that
the user names. `client` sends requests by HTTP, `replies` validates the answers of engines, and
`checks` refuses a server whose numbers cannot be used.
"""
