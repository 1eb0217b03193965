"""Nodes to sections: every key known, every value of the shape that its key asks for."""
