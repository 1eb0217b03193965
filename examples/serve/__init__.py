"""An inference server on msgen's queues and workers: see README.md beside this file."""
