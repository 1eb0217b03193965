"""The tokenizer and the detokenizer: a process each, from text to token ids and back."""
