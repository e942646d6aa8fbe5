"""Finds what outlives a call: the module's containers, globals, attributes and caches that functions write to."""

import ast
from collections.abc import Iterator, Sequence

from forge.lab.triage.names import Names
from forge.lab.triage.walk import Function

_CONTAINER_NAMES = """
    builtins.dict builtins.list builtins.set builtins.bytearray collections.defaultdict collections.OrderedDict
    collections.deque collections.Counter collections.ChainMap collections.UserDict collections.UserList
    weakref.WeakKeyDictionary weakref.WeakValueDictionary weakref.WeakSet types.SimpleNamespace threading.local
    contextvars.ContextVar
"""
_CONTAINERS = frozenset(_CONTAINER_NAMES.split())
_WRITE_METHODS = """
    append appendleft extend insert add update setdefault pop popitem clear remove discard set __setitem__
"""
_WRITES = frozenset(_WRITE_METHODS.split())
_CACHES = ("functools.lru_cache", "functools.cache", "functools.cached_property", "functools.singledispatch")
"""Decorators of Python that keep answers."""
_LITERALS = ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp


def lasting_writes(
    tree: ast.Module, nodes: Sequence[tuple[ast.AST, bool]], names: Names
) -> Iterator[ast.expr | ast.stmt]:
    """Yield every place where a function writes to something that outlives it."""
    shared = _shared(tree, names)
    for node, inside in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (one for one in _defaults(node) if _is_container(one, names))
                yield from (one for one in node.decorator_list if _is_cache(one, names))
            case ast.Global() | ast.Nonlocal():
                yield node
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                if inside and _root(node) in shared:
                    yield node
            case ast.Call(func=ast.Attribute(attr=method)) if (
                inside and method in _WRITES and _root(node.func) in shared
            ):
                yield node
            case _:
                pass


def _shared(tree: ast.Module, names: Names) -> set[str]:
    """Return the module's names for changeable values: containers, functions, classes, instances of those."""
    found: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(statement.name)
            case ast.Assign(targets=targets, value=value):
                if _is_container(value, names) or _is_own(value, found):
                    found |= {one.id for one in targets if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if _is_container(value, names):
                found.add(name)
            case _:
                pass
    return found


def _is_own(value: ast.expr, classes: set[str]) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in classes


def _is_container(value: ast.expr, names: Names) -> bool:
    if isinstance(value, _LITERALS):
        return True
    return isinstance(value, ast.Call) and names.resolve(value.func) in _CONTAINERS


def _is_cache(decorator: ast.expr, names: Names) -> bool:
    return names.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator) in _CACHES


def _defaults(function: Function) -> list[ast.expr]:
    return [*function.args.defaults, *(one for one in function.args.kw_defaults if one is not None)]


def _root(node: ast.expr) -> str:
    """Return the name at the start of `name.a[b].c`."""
    for _ in range(20):
        if not isinstance(node, ast.Subscript | ast.Attribute):
            break
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
