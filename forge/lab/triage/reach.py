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
    """The kernels of a module, and what its entry point makes of them."""

    unreached: tuple[ast.stmt, ...]
    """Compiled kernels whose names the entry point mentions neither directly nor indirectly."""
    launches_none: bool
    """Whether the module has kernels and the entry point provably launches none of them. It is proven if nothing else
    in the module could launch one, or find one in another way than by its name."""


def reach(tree: ast.Module, names: Names, entry_point: str) -> Reach:
    """Return what of the module's kernels the entry point leads to."""
    bound: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _binds(statement):
            bound.setdefault(name, []).append(statement)
    mentions = {id(statement): frozenset(mentioned(statement)) for statement in tree.body}
    jit = {id(one) for one in tree.body if _is_jit(one, names)}
    kernels = {name: one for name, found in bound.items() for one in found if id(one) in jit}
    reached = _closure({entry_point}, bound, mentions)
    unreached = tuple(statement for name, statement in kernels.items() if name not in reached)
    if not kernels or len(unreached) < len(kernels) or names.stars:
        return Reach(unreached, launches_none=False)
    mentioned_in: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in mentions[id(statement)]:
            mentioned_in.setdefault(name, []).append(statement)
    launching = _closure(set(kernels), mentioned_in, {id(one): frozenset(_binds(one)) for one in tree.body})
    ran = {id(node) for node, _ in executed(tree)}
    kept = any(
        mentions[id(one)] & launching and _may_launch(one, names, bool(mentions[id(one)] & kernels.keys()), ran)
        for one in tree.body
        if id(one) not in jit
    )
    used = {id(one): one for name in reached for one in bound.get(name, ())}
    makes = any(is_jit(node, names) for one in used.values() for node in walk(one))
    return Reach(unreached, launches_none=not kept and not makes)


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


def _may_launch(statement: ast.stmt, names: Names, direct: bool, ran: set[int]) -> bool:
    """Return whether importing the module passes what the statement mentions to a call, which may keep it for later.

    A decorator is such a call. `direct` says that it mentions a kernel; `ran` are the nodes that aren't of a separate
    program.
    """
    match statement:
        case ast.Import() | ast.ImportFrom():
            return False
        case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
            return not all(_only_wraps(one, names) for one in decorators)
        case ast.ClassDef(decorator_list=decorators):
            return direct or not all(_only_wraps(one, names) for one in decorators)
        case _:
            return any(isinstance(one, ast.Call | ast.Delete) and id(one) in ran for one in walk(statement))


def _only_wraps(decorator: ast.expr, names: Names) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return names.resolve(function) in _WRAPS


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
