"""Models behind an OpenAI-compatible completions endpoint, asked by token ids over HTTP."""
