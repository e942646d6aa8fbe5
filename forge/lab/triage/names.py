"""Resolves what a name stands for: imports, aliases and assembled strings become one dotted name.

There is one table for the whole file, without scopes: a name that is imported anywhere has this meaning everywhere. A
name that only a run could resolve stays unresolved.
"""

import ast
import builtins
from collections.abc import Iterable

from forge.lab.triage.rules import kind_of, known_below
from forge.lab.triage.walk import walk

MOST_DEPTH = 40
"""Number of levels of nested names and strings that are followed, at most. Each level takes some Python frames, so
that 40 stay far below the interpreter's 1000. What lies deeper counts as unknown."""
TEXT_LIMIT = 1000
"""Number of characters in a resolved string, at most. Chosen; names are far shorter. Parts are joined again and
again, so a larger number costs memory."""
_BUILTINS = frozenset(dir(builtins))
_IMPORTERS = frozenset({"builtins.__import__", "importlib.import_module", "importlib.__import__"})
"""Functions that import a module by its name."""


class Names:
    """The names of one parsed file."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.imports: dict[str, str] = {}
        self.stars = set[str]()
        """Modules that are imported whole."""
        self._starred: dict[str, str] = {}
        """Names with an entry of their own that such an import may bind, with the first module that has them."""
        self._whole: str | None = None
        """First such module of which every name counts."""
        self._values: dict[str, ast.expr] = {}
        self._bound: set[str] = set()
        self._parameters: set[str] = set()
        self._resolved: dict[int, str | None] = {}
        self._texts: dict[int, str | None] = {}
        for node in nodes:
            self._take(node)
        # In the order of the source, so that a value is resolved before those that are made from it.
        for value in self._values.values():
            self.resolve(value)
            self.text(value)

    def _take(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    self.imports[bound] = alias.name if alias.asname else bound
            case ast.ImportFrom():
                self._take_from(node)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                self._bind(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bind(name, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._bound.add(node.name)
            case ast.Name(ctx=ast.Store()):
                self._bound.add(node.id)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                self._parameters.add(name)
            case _:
                pass

    def _take_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._take_all(module)
            else:
                self.imports[alias.asname or alias.name] = f"{module}.{alias.name}"

    def _take_all(self, module: str) -> None:
        if module in self.stars:
            return
        self.stars.add(module)
        for name in known_below(module):
            self._starred.setdefault(name, f"{module}.{name}")
        if self._whole is None and kind_of(module) not in (None, "harmless"):
            self._whole = module

    def _bind(self, name: str, value: ast.expr) -> None:
        if name not in self._values:
            self._values[name] = value

    def resolve(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return the dotted name of an expression, with `builtins.` before a builtin.

        Return None if only a run could tell.
        """
        if depth > MOST_DEPTH:
            return None
        key = id(node)
        if key not in self._resolved:
            self._resolved[key] = None  # a name defined by itself stands for nothing
            self._resolved[key] = self._resolve(node, depth + 1)
        return self._resolved[key]

    def _resolve(self, node: ast.expr, depth: int) -> str | None:
        match node:
            case ast.Name(id=name):
                return self._resolve_name(name, depth)
            case ast.Attribute(value=value, attr=attribute):
                return _below(self.resolve(value, depth), attribute)
            case ast.NamedExpr(value=value):
                return self.resolve(value, depth)
            case ast.Call(func=function, args=arguments):
                return self._resolve_call(self.resolve(function, depth), arguments, depth)
            case ast.Subscript(value=value, slice=item):
                return self._resolve_item(value, item, depth)
            case _:
                return None

    def _resolve_name(self, name: str, depth: int) -> str | None:
        if name in self.imports:
            return self.imports[name]
        if name in self._values:
            return self.resolve(self._values[name], depth)
        if name in self._bound:
            return None
        if name == "__builtins__":
            return "builtins"
        builtin = f"builtins.{name}" if name in _BUILTINS else None
        if name in self._parameters:
            return builtin
        return self._starred.get(name) or builtin or (f"{self._whole}.{name}" if self._whole else None)

    def _resolve_call(self, function: str | None, arguments: list[ast.expr], depth: int) -> str | None:
        if function in _IMPORTERS and arguments:
            return self.text(arguments[0], depth)
        if function == "builtins.getattr" and len(arguments) >= 2:
            return _below(self.resolve(arguments[0], depth), self.text(arguments[1], depth))
        if function == "builtins.vars" and len(arguments) == 1:
            return _below(self.resolve(arguments[0], depth), "__dict__")
        return None

    def _resolve_item(self, value: ast.expr, item: ast.expr, depth: int) -> str | None:
        base = self.resolve(value, depth)
        if base is None or not isinstance(name := self.text(item, depth), str):
            return None
        if base == "sys.modules":
            return name
        if base == "builtins":
            return f"builtins.{name}"
        return _below(base.removesuffix(".__dict__"), name) if base.endswith(".__dict__") else None

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return the string that an expression gives, if that can be read without running it."""
        if depth > MOST_DEPTH:
            return None
        key = id(node)
        if key not in self._texts:
            self._texts[key] = None
            self._texts[key] = self._text(node, depth)
        return self._texts[key]

    def _text(self, node: ast.expr, depth: int) -> str | None:
        match node:
            case ast.Constant(value=str(value)):
                return value if len(value) <= TEXT_LIMIT else None
            case ast.Constant(value=bytes(value)):
                return value.decode("latin-1") if len(value) <= TEXT_LIMIT else None
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined("", (left, right), depth)
            case ast.JoinedStr(values=values):
                return self._joined("", values, depth)
            case ast.FormattedValue(value=value, format_spec=None):
                return self.text(value, depth + 1)
            case ast.Name(id=name) if name in self._values:
                return self.text(self._values[name], depth + 1)
            case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(operand=step))):
                reversed_text = self.text(value, depth + 1)
                return reversed_text[::-1] if reversed_text and _is_one(step) else None
            case ast.Call():
                return self._called_text(node, depth + 1)
            case _:
                return None

    def _called_text(self, node: ast.Call, depth: int) -> str | None:
        match node:
            case ast.Call(
                func=ast.Attribute(value=joiner, attr="join"), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)]
            ):
                between = self.text(joiner, depth)
                return self._joined(between, parts, depth) if between is not None else None
            case ast.Call(func=ast.Attribute(value=value, attr="decode" | "encode" | "lower" | "strip" as method)):
                text = self.text(value, depth)
                if text is None or method in {"decode", "encode"}:
                    return text
                return text.lower() if method == "lower" else text.strip()
            case ast.Call(func=ast.Name(id="chr"), args=[ast.Constant(value=int(code))]):
                return chr(code) if 0 <= code < 0x110000 else None
            case ast.Call(func=ast.Name(id="str"), args=[value]):
                return self.text(value, depth)
            case _:
                return None

    def _joined(self, between: str, parts: Iterable[ast.expr], depth: int) -> str | None:
        texts, length = list[str](), 0
        for part in parts:
            text = self.text(part, depth + 1)
            length += len(text or "")
            if text is None or length > TEXT_LIMIT:
                return None
            texts.append(text)
        return between.join(texts)


def _below(base: str | None, attribute: str | None) -> str | None:
    return f"{base}.{attribute}" if base and attribute else None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def mentioned(node: ast.AST) -> set[str]:
    """Return every name, and every string that could be one, below a node."""
    found: set[str] = set()
    for one in walk(node):
        if isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) <= TEXT_LIMIT:
            found.add(one.value)
    return found
