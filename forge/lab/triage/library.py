"""Finds the C++ text in a file, and whether the library that it loads is the one that Forge built from it."""

import ast
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from forge.domain.source_finding import FindingKind
from forge.lab.triage.cpp_rules import scan
from forge.lab.triage.names import Names
from forge.lab.triage.walk import walk

BUILT = "libkernel.so"
"""Name of the shared object that a build gives."""
_MARKS = ("#include", 'extern "C"', "__global__", "TORCH_LIBRARY", "PYBIND11_MODULE")
"""Texts by which a string is taken for C++ or CUDA source."""
PATH_NODES = 200
"""Number of nodes in a path's expression and in its names that are read, at most. Chosen; a path of ten parts has
fewer than 50, and a longer one isn't accepted."""
_LOADERS = ("ctypes.CDLL", "ctypes.PyDLL", "ctypes.cdll.LoadLibrary")
"""Functions that load a shared object."""
Place = tuple[int, int]


def loads_built_library(call: ast.Call, names: Names, assigned: dict[str, ast.expr]) -> bool:
    """Return whether a call of ctypes loads `libkernel.so` beside this file, and its path says nothing else."""
    if names.resolve(call.func) not in _LOADERS or not call.args:
        return False
    nodes = list(islice(_path_nodes(call.args[0], assigned), PATH_NODES + 1))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    beside = any(isinstance(node, ast.Name) and node.id == "__file__" for node in nodes)
    only_built = {text.rpartition("/")[2] for text in texts} == {BUILT} and ".." not in "".join(texts)
    return beside and only_built and len(nodes) <= PATH_NODES


def _path_nodes(path: ast.expr, assigned: dict[str, ast.expr]) -> Iterator[ast.AST]:
    """Yield the nodes of an expression, and of the values of the names in it."""
    waiting, seen = [path], set[str]()
    while waiting:
        for node in walk(waiting.pop()):
            yield node
            if isinstance(node, ast.Name) and node.id in assigned and node.id not in seen:
                seen.add(node.id)
                waiting.append(assigned[node.id])


def assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of the module's plain names; a name that is assigned twice has none."""
    assigned = [one for one in tree.body if isinstance(one, ast.Assign)]
    found = [(to.id, one.value) for one in assigned for to in one.targets if isinstance(to, ast.Name)]
    times = Counter(name for name, _ in found)
    return {name: value for name, value in found if times[name] == 1}


def cpp_texts(nodes: Sequence[tuple[ast.AST, bool]], named: ast.expr | None) -> Iterator[ast.Constant]:
    """Yield the string constants that are C++: the one that metadata.json names, and those that look like it."""
    for node, _ in nodes:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if node is named or any(mark in node.value for mark in _MARKS):
            yield node


def scan_constant(node: ast.Constant, *, cuda: bool) -> Iterator[tuple[FindingKind, Place, Place]]:
    """Yield the places in a constant's C++ text, as places in kernel.py.

    They are exact if the literal has no escapes.
    """
    text = str(node.value)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    exact = (node.end_lineno or 0) - node.lineno == len(starts) - 2 > 0
    for kind, token in scan(text, cuda=cuda):
        line = bisect_right(starts, token.offset) - 1
        column, length = (token.offset - starts[line], len(token.text)) if exact and line > 0 else (0, 1)
        line = node.lineno + (line if exact else 0)
        yield kind, (line, column), (line, column + length)
