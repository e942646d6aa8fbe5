"""Finds which kernels the entry point can launch, by name.

Names are followed through the module's functions, classes, tables and aliases.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forge.lab.triage.names import Names, mentioned
from forge.lab.triage.walk import Function, children, walk

MOST_LAUNCHES = 50
"""Number of launches in one function that are followed, at most."""
_JIT = ("triton.jit", "triton.runtime.jit", "triton.JITFunction", "triton.experimental.gluon.jit")


@dataclass(frozen=True)
class Reach:
    """The names that the entry point leads to."""

    kernels: dict[str, ast.stmt]
    """Compiled kernels of the module, by name."""
    libraries: dict[str, ast.stmt]
    """Statements of names that come from a library loaded by ctypes, by name."""
    reached: frozenset[str]
    """Names that the entry point mentions, directly or indirectly."""
    certain: bool
    """Whether nothing else in the module could launch a kernel, or find one in another way than by its name."""

    @property
    def launches_none(self) -> bool:
        """Whether the module has kernels and the entry point provably launches none of them."""
        return self.certain and bool(self.kernels) and not self.kernels.keys() & self.reached


def reach(tree: ast.Module, names: Names, entry_point: str) -> Reach:
    """Follow the entry point's names through the module."""
    bound: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _binds(statement):
            bound.setdefault(name, []).append(statement)
    mentions = {id(statement): frozenset(mentioned(statement)) for statement in tree.body}
    jit = {id(one) for one in tree.body if _is_jit(one, names)}
    kernels = {name: one for name, found in bound.items() for one in found if id(one) in jit}
    libraries = _libraries(tree, names, mentions)
    reached = _closure({entry_point}, bound, mentions)
    if not kernels:
        return Reach(kernels, libraries, frozenset(reached), certain=False)
    certain = not names.stars and not any(_may_launch(one, names, frozenset(kernels), mentions) for one in tree.body)
    return Reach(
        kernels, libraries, frozenset(reached), certain and not _makes_kernels(bound, reached, kernels, names)
    )


def is_jit(node: ast.AST, names: Names) -> bool:
    """Return whether an expression is triton's compiler, or a call of it."""
    if isinstance(node, ast.Call):
        node = node.func
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    return (names.resolve(node) or _as_written(node)) in (*_JIT, "jit")


def _as_written(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _binds(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import() | ast.ImportFrom():
            return []
        case _:
            return [one.id for one in walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]


def _is_jit(statement: ast.stmt, names: Names) -> bool:
    if isinstance(statement, Function):
        return any(is_jit(one, names) for one in statement.decorator_list)
    if isinstance(statement, ast.Assign):
        return any(is_jit(one, names) for one in walk(statement.value) if isinstance(one, ast.Call | ast.Attribute))
    return False


def _may_launch(
    statement: ast.stmt, names: Names, kernels: frozenset[str], mentions: dict[int, frozenset[str]]
) -> bool:
    """Return whether importing the module passes a kernel to a call, which may keep it for later."""
    if isinstance(statement, Function | ast.Import | ast.ImportFrom) or _is_jit(statement, names):
        return False
    if not mentions[id(statement)] & kernels:
        return False
    return isinstance(statement, ast.ClassDef) or any(
        isinstance(one, ast.Call | ast.Delete) for one in walk(statement)
    )


def _makes_kernels(
    bound: dict[str, list[ast.stmt]], reached: set[str], kernels: dict[str, ast.stmt], names: Names
) -> bool:
    """Return whether a reached statement compiles kernels itself."""
    used = {id(one): one for name in reached - kernels.keys() for one in bound.get(name, ())}
    return any(is_jit(node, names) for one in used.values() for node in walk(one))


def _libraries(tree: ast.Module, names: Names, mentions: dict[int, frozenset[str]]) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and (mentions[id(statement)] & found.keys() or _loads(statement, names)):
            found |= {one.id: statement for one in statement.targets if isinstance(one, ast.Name)}
    return found


def _loads(statement: ast.Assign, names: Names) -> bool:
    calls = (one.func for one in walk(statement.value) if isinstance(one, ast.Call))
    return any((names.resolve(one) or "").startswith(("ctypes.CDLL", "ctypes.cdll", "ctypes.PyDLL")) for one in calls)


def drops_outputs(function: ast.AST, launchers: frozenset[str]) -> list[ast.Call]:
    """Return the launches in a function on which no returned value depends."""
    if not isinstance(function, Function):
        return []
    calls = [one for one in walk(function) if isinstance(one, ast.Call) and _launcher(one.func) in launchers][
        :MOST_LAUNCHES
    ]
    returned = [one.value for one in walk(function) if isinstance(one, ast.Return) and one.value is not None]
    if not calls or not returned:
        return []
    flows, sources = _flows(function)
    parameters = {one.arg for one in walk(function.args) if isinstance(one, ast.arg)}
    results = _closure({name for one in returned for name in mentioned(one)}, flows, sources)
    own = flows.keys() - parameters
    inside = {id(node) for one in returned for node in walk(one)}
    return [
        call
        for call in calls
        if id(call) not in inside
        and _launcher(call.func) not in results
        and not _given(call, flows, sources) & results & own
    ]


def _given(call: ast.Call, flows: dict[str, list[ast.AST]], sources: dict[int, frozenset[str]]) -> set[str]:
    direct = {name for part in children(call) if part is not call.func for name in mentioned(part)}
    return _closure(direct, flows, sources)


def _launcher(node: ast.expr) -> str:
    """Return the name at the root of `kernel[grid]`, `library.symbol` or `symbol`."""
    for _ in range(8):
        if isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _flows(function: ast.AST) -> tuple[dict[str, list[ast.AST]], dict[int, frozenset[str]]]:
    """Return the nodes in which each name is computed, and the names that each node (by `id`) is computed from."""
    flows: dict[str, list[ast.AST]] = {}
    sources: dict[int, frozenset[str]] = {}
    for node in walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                targets = [target]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                targets = [target]
            case _:
                continue
        sources[id(node)] = frozenset(mentioned(value))
        for target in targets:
            for name in mentioned(target):
                flows.setdefault(name, []).append(node)
    return flows, sources


def _closure(
    names: set[str], made_in: Mapping[str, Sequence[ast.AST]], sources: Mapping[int, frozenset[str]]
) -> set[str]:
    """Return the names with all names that they come from. A node's own names are added once."""
    found: set[str] = set()
    taken: set[int] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for node in made_in.get(name, ()):
            if id(node) not in taken:
                taken.add(id(node))
                waiting += sources[id(node)]
    return found
