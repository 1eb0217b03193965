"""The engine: the handler of msgen's workers, and what decides which requests run and which token is next.

It imports the model; it knows nothing of HTTP and text.
"""
