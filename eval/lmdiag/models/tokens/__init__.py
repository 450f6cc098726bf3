"""From text to the pieces of a tokenizer: questions as rows of token ids, words, vocabularies."""
