"""From the name of a model to its weights and tokenizer, or to one line that says why not."""
