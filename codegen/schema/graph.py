"""Graphs of types: which hold one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


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
