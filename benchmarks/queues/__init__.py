"""Queues and broadcast between real processes over ipc, against bare sockets and gloo."""
