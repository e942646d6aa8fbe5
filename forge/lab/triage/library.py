"""Finds the C++ text in a file, and whether the library that it loads is the one that Forge built from it."""

import ast
from bisect import bisect_right
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
_MOST_STEPS = 3
"""Number of steps from a name to its value that are followed, at most. Chosen: a path, a folder and a file name each
in a variable of its own are three. A longer path isn't accepted."""
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
    texts, beside = _strings_in(call.args[0], assigned)
    return beside and {text.rpartition("/")[2] for text in texts} == {BUILT} and ".." not in "".join(texts)


def _strings_in(path: ast.expr, assigned: dict[str, ast.expr]) -> tuple[set[str], bool]:
    """Return the strings in an expression and in the names it uses, and whether `__file__` is among the names."""
    texts: set[str] = set()
    beside, seen, waiting = False, set[str](), [path]
    for _ in range(_MOST_STEPS):
        following: list[ast.expr] = []
        nodes = list(islice((one for root in waiting for one in walk(root)), PATH_NODES + 1))
        if len(nodes) > PATH_NODES:
            return set(), False
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.Name) and node.id == "__file__":
                beside = True
            elif isinstance(node, ast.Name) and node.id in assigned and node.id not in seen:
                seen.add(node.id)
                following.append(assigned[node.id])
        waiting = following
    return texts, beside


def assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of the module's plain names; a name that is assigned twice has none."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    (twice.add if target.id in found else lambda _: None)(target.id)
                    found[target.id] = statement.value
    return {name: value for name, value in found.items() if name not in twice}


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
