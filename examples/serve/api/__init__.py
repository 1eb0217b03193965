"""The API server: HTTP with OpenAI's JSON on one side, messages on the other.

Requests go to the tokenizer; replies come from the detokenizer, or from the tokenizer for a request
that it refuses. It knows nothing of tensors and models.
"""
