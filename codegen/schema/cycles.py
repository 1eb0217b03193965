"""Circles in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Vertex = TypeVar("Vertex", str, "tuple[str, str]")


def find_cycles(edges: Mapping[Vertex, Iterable[Vertex]]) -> list[list[Vertex]]:
    """Find circles, at least one through each edge that closes one, as paths back to their start.

    A circle starts at its least vertex, and comes once.
    """
    done: set[Vertex] = set()
    cycles: list[list[Vertex]] = []
    for start in sorted(edges):
        stack: list[tuple[Vertex, list[Vertex]]] = [(start, list(edges[start]))]
        path = [start]
        while stack:
            vertex, rest = stack[-1]
            if not rest or vertex in done:
                done.add(vertex)
                stack.pop()
                path.pop()
                continue
            target = rest.pop(0)
            if target in path:
                cycles.append(_closed(path[path.index(target) :]))
            elif target in edges and target not in done:
                stack.append((target, list(edges[target])))
                path.append(target)
    return cycles


def _closed(path: list[Vertex]) -> list[Vertex]:
    least = path.index(min(path))
    return path[least:] + path[: least + 1]
