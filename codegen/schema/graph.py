"""Graphs: of types that hold one another, and of groups that import one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")
Vertex = TypeVar("Vertex", str, "tuple[str, str]")
"""Something that sorts, so that circles are found in the same order each time."""


def components(edges: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """Split a graph into its strongly connected components, those pointed to first.

    Tarjan's algorithm, without recursion: schemas may be deeper than Python's stack.

    Args:
        edges: each node to the nodes that it points to; those outside of the keys are passed over.
    """
    order: dict[T, int] = {}
    lowest: dict[T, int] = {}
    open_nodes: list[T] = []
    done: set[T] = set()
    found: list[list[T]] = []
    for start in edges:
        if start in order:
            continue
        stack = [(start, iter(edges[start]))]
        order[start] = lowest[start] = len(order)
        open_nodes.append(start)
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in edges or target in done:
                    continue
                if target in order:
                    lowest[node] = min(lowest[node], order[target])
                    continue
                order[target] = lowest[target] = len(order)
                open_nodes.append(target)
                stack.append((target, iter(edges[target])))
                break
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    index = open_nodes.index(node)
                    found.append(open_nodes[index:])
                    done.update(open_nodes[index:])
                    del open_nodes[index:]
    return found


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
