"""The model: its files, its layers, their split over ranks, and the cache of keys and values.

It knows nothing of requests and messages. Nothing is imported here: the command line needs the files'
module alone, which is light.
"""
