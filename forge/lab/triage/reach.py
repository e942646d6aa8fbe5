"""Finds which kernels the entry point can launch, by name.

Names are followed through the module's functions, classes, tables and aliases.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forge.lab.triage.names import Names, mentioned
from forge.lab.triage.walk import Function, executed, walk

_JIT = ("triton.jit", "triton.runtime.jit", "triton.JITFunction", "triton.experimental.gluon.jit")
_WRAPPERS = """
    torch.no_grad torch.inference_mode torch.enable_grad torch.compile torch.compiler.disable torch.jit.ignore
    functools.cache functools.lru_cache functools.wraps contextlib.contextmanager dataclasses.dataclass
"""
_WRAPS = frozenset(_WRAPPERS.split())
"""Decorators that keep a function under its own name alone. Others may also keep it in a table, as those of
`torch.library` do."""


@dataclass(frozen=True)
class Reach:
    """The names that the entry point leads to."""

    kernels: dict[str, ast.stmt]
    """Compiled kernels of the module, by name."""
    reached: frozenset[str]
    """Names that the entry point mentions, directly or indirectly."""
    certain: bool
    """Whether nothing else in the module could launch a kernel, or find one in another way than by its name."""

    @property
    def launches_none(self) -> bool:
        """Whether the module has kernels and the entry point provably launches none of them."""
        return self.certain and bool(self.kernels) and not self.kernels.keys() & self.reached


def reach(tree: ast.Module, names: Names, entry_point: str) -> Reach:
    """Return the module's kernels, and the names that the entry point mentions, directly or indirectly."""
    bound: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _binds(statement):
            bound.setdefault(name, []).append(statement)
    mentions = {id(statement): frozenset(mentioned(statement)) for statement in tree.body}
    jit = {id(one) for one in tree.body if _is_jit(one, names)}
    kernels = {name: one for name, found in bound.items() for one in found if id(one) in jit}
    reached = _closure({entry_point}, bound, mentions)
    if not kernels:
        return Reach(kernels, frozenset(reached), certain=False)
    launching = _lead_to(frozenset(kernels), tree.body, mentions)
    ran = {id(node) for node, _ in executed(tree)}
    keeping = (one for one in tree.body if mentions[id(one)] & launching and not _is_jit(one, names))
    certain = not names.stars and not any(
        _may_launch(one, names, frozenset(kernels), mentions, ran) for one in keeping
    )
    return Reach(kernels, frozenset(reached), certain and not _makes_kernels(bound, reached, kernels, names))


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


def _lead_to(
    kernels: frozenset[str], statements: Sequence[ast.stmt], mentions: dict[int, frozenset[str]]
) -> set[str]:
    """Return the names of kernels, and of all that mentions one of them, directly or indirectly."""
    mentioned_in: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for name in mentions[id(statement)]:
            mentioned_in.setdefault(name, []).append(statement)
    return _closure(set(kernels), mentioned_in, {id(one): frozenset(_binds(one)) for one in statements})


def _may_launch(
    statement: ast.stmt,
    names: Names,
    kernels: frozenset[str],
    mentions: dict[int, frozenset[str]],
    ran: set[int],
) -> bool:
    """Return whether importing the module passes what the statement mentions to a call, which may keep it for later.

    A decorator is such a call. `ran` are the nodes that aren't of a separate program.
    """
    match statement:
        case ast.Import() | ast.ImportFrom():
            return False
        case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
            return not all(_only_wraps(one, names) for one in decorators)
        case ast.ClassDef(decorator_list=decorators):
            direct = bool(mentions[id(statement)] & kernels)
            return direct or not all(_only_wraps(one, names) for one in decorators)
        case _:
            return any(isinstance(one, ast.Call | ast.Delete) and id(one) in ran for one in walk(statement))


def _only_wraps(decorator: ast.expr, names: Names) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return names.resolve(function) in _WRAPS


def _makes_kernels(
    bound: dict[str, list[ast.stmt]], reached: set[str], kernels: dict[str, ast.stmt], names: Names
) -> bool:
    """Return whether a reached statement compiles kernels itself."""
    used = {id(one): one for name in reached - kernels.keys() for one in bound.get(name, ())}
    return any(is_jit(node, names) for one in used.values() for node in walk(one))


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
