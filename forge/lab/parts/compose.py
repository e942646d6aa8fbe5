"""Puts kernels of parts together into one kernel.py with a class ModelNew. Other parts stay on their references.

Each kernel keeps its text, with its module-level names renamed. C++ texts become one text, each in a namespace.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forge.domain.parsed_source import parse_source
from forge.lab.parts.graph import Graph
from forge.lab.parts.groups import Part
from forge.lab.parts.program import body_of, steps_of

SOURCE = "CPP_SOURCE"
"""Name of the constant that holds the C++ text of all kernels."""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
"""Pattern of an include in C++ text, which stands before all kernels."""
_FUTURE = "from __future__ "
"""Beginning of an import that must stand first in a Python file."""
_EXPORTED = re.compile(r'extern\s++"C"\s++[\w\s*&:<>]*?\b(\w+)\s*\(')
"""Pattern of the name of a function that C++ text exports."""

_WORD = re.compile(r"\w+")


class CannotCompose(Exception):
    """A kernel's text can't stand beside others; the message says why. Its part stays on the reference."""


@dataclass(frozen=True)
class PartKernel:
    """The kernel of one part, as its candidate has it."""

    text: str
    entry_point: str
    cpp_source: str | None
    """Name of the constant with its C++ text. None: it has none."""


@dataclass
class _Renamed:
    """A kernel whose names carry a prefix."""

    python: str
    imports: list[str]
    prefix: str
    cpp: str | None = None
    includes: list[str] = field(default_factory=list)


def composed_kernel(
    module_source: str, graph: Graph, parts: Sequence[Part], kernels: Mapping[int, PartKernel], *, returned: str = ""
) -> tuple[str, bool]:
    """Return a kernel.py for the whole module, and whether it has C++ text. `kernels` maps a part's place to its own.

    `returned` is the form of the module's results, with `...` for each; without it, one result is no tuple. Raises
    CannotCompose.
    """
    by_text: dict[str, _Renamed] = {}
    for place, kernel in kernels.items():
        if kernel.text not in by_text:
            try:
                by_text[kernel.text] = _renamed(kernel, f"p{place}_")
            except (
                RecursionError,
                ValueError,
            ) as error:  # too deep to be written again, or a number of too many digits
                raise CannotCompose(
                    "it can't be written again: expected less nesting, and shorter numbers"
                ) from error
    entries = {place: by_text[kernel.text].prefix + kernel.entry_point for place, kernel in kernels.items()}
    cpp = [one for one in by_text.values() if one.cpp is not None]
    pieces = [
        '"""A module put together from kernels of its parts. Parts without a kernel run as their references."""\n'
    ]
    future, module_source = _without_future(module_source)
    imports = {line for one in by_text.values() for line in one.imports} | {"import torch", *future}
    pieces += sorted(imports, key=lambda line: (not line.startswith(_FUTURE), line))
    if cpp:
        included = sorted({line for one in cpp for line in one.includes})
        text = "\n".join([*included, *(one.cpp or "" for one in cpp)])
        if '"""' in text:
            raise CannotCompose("its C++ text has three double quotes: expected none")
        pieces.append(f'{SOURCE} = r"""\n{text}\n"""\n')
    pieces += [one.python for one in by_text.values()]
    pieces += [_functions(parts, entries), _composed(graph, parts, entries, returned), module_source, _MODEL]
    return "\n\n".join(pieces), bool(cpp)


_MODEL = '''class ModelNew(Model):
    """The module, with the same state dict."""

    def forward(self, *inputs):
        return _composed(inputs, self.state_dict(keep_vars=True))
'''


def _without_future(module_source: str) -> tuple[list[str], str]:
    """Return a file's imports from __future__, which must come first in a text, and the file without them."""
    try:
        tree = parse_source(module_source)
        found = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
        if not found:
            return [], module_source
        tree.body = [one for one in tree.body if one not in found]
        return [ast.unparse(one) for one in found], ast.unparse(tree)
    except (SyntaxError, RecursionError, ValueError) as error:
        raise CannotCompose("the module can't be written again") from error


def _functions(parts: Sequence[Part], entries: Mapping[int, str]) -> str:
    functions = ["def _as_tuple(found):\n    return tuple(found) if isinstance(found, (tuple, list)) else (found,)\n"]
    for place, part in enumerate(parts):
        if place not in entries:
            parameters = ", ".join(f"in_{one}" for one in range(len(part.inputs)))
            functions.append(f"def _part_{place}({parameters}):\n{body_of(part)}")
    return "\n\n".join(functions)


def _composed(graph: Graph, parts: Sequence[Part], entries: Mapping[int, str], form: str) -> str:
    def call(place: int, given: list[str]) -> str:
        if place not in entries:
            return f"_part_{place}({', '.join(given)})"
        return f"_as_tuple({entries[place]}({', '.join(f'{one}.contiguous()' for one in given)}))"

    steps, results = steps_of(graph, parts, call)
    wanted = form.count("...") if form else len(results)
    if wanted != len(results):
        raise CannotCompose(f"the graph has {len(results)} results, and the module returns {wanted}")
    for one in results if form else ():
        form = form.replace("...", one, 1)
    return f"def _composed(inputs, state):\n{steps}    return {form or ', '.join(results)}\n"


def _renamed(kernel: PartKernel, prefix: str) -> _Renamed:
    try:
        tree = parse_source(kernel.text)
    except SyntaxError as error:
        raise CannotCompose(f"it can't be parsed: {error}") from error
    imports = [ast.unparse(one) for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    rest = [one for one in tree.body if not isinstance(one, ast.Import | ast.ImportFrom) and not _is_text(one)]
    cpp, symbols = None, frozenset[str]()
    if kernel.cpp_source is not None:
        text = next((_text_of(one) for one in rest if kernel.cpp_source in _bound(one)), None)
        if text is None:
            raise CannotCompose(f"its constant {kernel.cpp_source!r} is no plain text")
        rest = [one for one in rest if kernel.cpp_source not in _bound(one)]
        cpp, symbols = text, frozenset(_EXPORTED.findall(text))
    bound = {name for one in rest for name in _bound(one)}
    renamer = _Renamer(prefix, frozenset(bound), symbols)
    python = "\n\n".join(ast.unparse(renamer.visit(one)) for one in rest)
    found = _Renamed(python, imports, prefix)
    if cpp is not None:
        found.includes = [line.strip() for line in _INCLUDE.findall(cpp)]
        body = _INCLUDE.sub("", cpp)
        body = _WORD.sub(lambda word: prefix + word[0] if word[0] in symbols else word[0], body)
        found.cpp = f"namespace {prefix.rstrip('_')} {{\n{body.strip()}\n}}"
    return found


class _Renamer(ast.NodeTransformer):
    """Puts a prefix before module-level names, and before C++ symbols where the library is asked for them.

    A parameter hides a module-level name of its function, so neither it nor what reads it is renamed.
    """

    def __init__(self, prefix: str, bound: frozenset[str], symbols: frozenset[str]) -> None:
        self._prefix, self._bound, self._symbols = prefix, bound, symbols
        self._hidden = Counter[str]()

    def visit_Name(self, node: ast.Name) -> ast.Name:  # the name that ast calls
        return ast.Name(self._new(node.id), node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # the name that ast calls
        node.name = self._new(node.name)
        decorators = [self.visit(one) for one in node.decorator_list]
        node.decorator_list = []
        self._within(node)
        node.decorator_list = decorators
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._within(node)
        return node

    def _within(self, node: ast.FunctionDef | ast.Lambda) -> None:
        hidden = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        self._hidden.update(hidden)
        self.generic_visit(node)
        self._hidden.subtract(hidden)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:  # the name that ast calls
        node.name = self._new(node.name)
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> ast.AST:  # the name that ast calls
        return ast.Global([self._new(name) for name in node.names])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # the name that ast calls
        if node.attr in self._symbols:
            node.attr = self._prefix + node.attr
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:  # the name that ast calls
        return ast.Constant(self._prefix + str(node.value)) if node.value in self._symbols else node

    def _new(self, name: str) -> str:
        return self._prefix + name if name in self._bound and not self._hidden[name] else name


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a module-level statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _text_of(statement: ast.stmt) -> str | None:
    value = statement.value if isinstance(statement, ast.Assign) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
