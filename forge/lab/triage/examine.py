"""Applies every rule in one pass over the tree, then answers the questions that need the whole module."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from forge.domain.candidate import Metadata
from forge.domain.source_finding import FindingKind, SourceFinding
from forge.lab.triage.collector import Collector
from forge.lab.triage.library import assignments, cpp_texts, loads_built_library, scan_constant
from forge.lab.triage.names import Names
from forge.lab.triage.reach import is_jit, reach
from forge.lab.triage.rules import ATTRIBUTES, METHODS, METHODS_OF_TENSORS, is_harmless, kind_of
from forge.lab.triage.state import lasting_writes
from forge.lab.triage.walk import Function, executed, walk
from forge.languages import Language

PAYLOAD_CHARACTERS = 1024
"""Number of characters without white space from which on a constant is no text that a person wrote. Chosen;
identifiers and addresses are far shorter."""
_OPAQUE: frozenset[FindingKind] = frozenset({"dynamic_import", "eval_exec", "introspection"})
"""Kinds of findings after which other findings can't be complete."""
_INTERCEPTS = frozenset({"__torch_function__", "__torch_dispatch__"})
Expression = ast.Name | ast.Attribute | ast.Call | ast.Subscript


@dataclass(frozen=True)
class TriageResult:
    """The result of reading the sources."""

    findings: tuple[SourceFinding, ...]
    launches_no_kernel: bool
    """Whether the entry point provably launches none of the module's compiled kernels."""


def triage(
    tree: ast.Module, kernel: str, *, metadata: Metadata, language: Language, entry_point: str
) -> TriageResult:
    """Read a parsed kernel.py; never raises, for any text."""
    nodes = executed(tree)
    reader = _Reader(kernel, tree, [node for node, _ in nodes], language)
    for node, _ in nodes:
        reader.visit(node)
    for place in lasting_writes(tree, nodes, reader.names):
        reader.found.add("state", place)
    named = reader.assigned.get(metadata.build.source) if metadata.build else None
    for constant in cpp_texts(nodes, named):
        for kind, start, end in scan_constant(constant, cuda=language.device_code):
            if not (kind == "foreign_kernel" and language.library_calls):
                reader.found.add_span(kind, start, end)
    reached = reach(tree, reader.names, entry_point)
    for name, statement in reached.kernels.items():
        if name not in reached.reached:
            reader.found.add("decoy_kernel", statement)
    opaque = bool(reader.found.kinds() & _OPAQUE) or reader.unnamed
    return TriageResult(reader.found.findings(), reached.launches_none and not opaque)


class _Reader:
    """Applies the rules that look at one node."""

    def __init__(self, kernel: str, tree: ast.Module, nodes: list[ast.AST], language: Language) -> None:
        self.names = Names(nodes)
        self.assigned = assignments(tree)
        self.found = Collector(kernel)
        self.unnamed = False
        """Whether the source looks up an attribute or a name that can't be read from it."""
        self._language = language
        self._reported: set[int] = set()
        self._device: set[int] = {id(one) for node in nodes if self._is_kernel(node) for one in walk(node)}
        self._rules: dict[type[ast.AST], Callable[[ast.AST], None]] = {
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.Name: self._expression,
            ast.Attribute: self._expression,
            ast.Call: self._expression,
            ast.Subscript: self._expression,
            ast.BinOp: self._operator,
            ast.Constant: self._constant,
            ast.ClassDef: self._class,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.With: self._with,
        }

    def visit(self, node: ast.AST) -> None:
        """Apply the rules for a node's type."""
        rule = self._rules.get(type(node))
        if rule is not None:
            rule(node)

    def _is_kernel(self, node: ast.AST) -> bool:
        return isinstance(node, Function) and any(is_jit(one, self.names) for one in node.decorator_list)

    def _import(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if kind_of(f"{module}.{alias.name}" if module else alias.name) == "foreign_kernel":
                self.found.add("foreign_kernel", alias)

    def _expression(self, node: ast.AST) -> None:
        assert isinstance(node, Expression)
        if id(node) in self._reported:
            return
        if isinstance(node, ast.Call):
            self._call(node)
        dotted = self.names.resolve(node)
        kind = "patching" if self._patches(node) else self._kind(node, dotted) if dotted else None
        if kind is not None:
            self.found.add(kind, node)
            self._mark_reported(node)
        elif dotted and is_harmless(dotted):
            self._mark_reported(node)
        else:
            kind_of_attribute = ATTRIBUTES.get(_last_name(node))
            if kind_of_attribute is not None:
                self.found.add(kind_of_attribute, node)

    def _kind(self, node: Expression, dotted: str) -> FindingKind | None:
        kind = kind_of(dotted)
        if kind == "vendor_fallback" and (self._language.library_calls or id(node) in self._device):
            return None
        if kind == "foreign_code" and self._language.builds and dotted.startswith("torch.utils.cpp_extension"):
            return None
        return kind

    def _patches(self, node: Expression) -> bool:
        """Return whether an attribute is replaced that belongs to an import, or defines a function or an object."""
        if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
            return False
        return node.attr in {"__code__", "__class__", "__dict__"} or self.names.resolve(node.value) is not None

    def _call(self, node: ast.Call) -> None:
        dotted = self.names.resolve(node.func)
        if self._language.builds and loads_built_library(node, self.names, self.assigned):
            self._mark_reported(node.func)
        elif dotted == "builtins.getattr" and self.names.resolve(node) is None:
            self.unnamed |= len(node.args) < 2 or self.names.text(node.args[1]) is None
        elif dotted is None and isinstance(node.func, ast.Attribute):
            self._method(node, node.func.attr)

    def _method(self, node: ast.Call, method: str) -> None:
        kind = METHODS.get(method)
        if kind is not None:
            self.found.add(kind, node)
        elif method in METHODS_OF_TENSORS and not self._language.library_calls and id(node) not in self._device:
            self.found.add("vendor_fallback", node)

    def _mark_reported(self, node: ast.expr) -> None:
        """Mark the expressions inside a reported name, so that they aren't reported again."""
        for _ in range(100):
            self._reported.add(id(node))
            match node:
                case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                    node = inner
                case _:
                    return

    def _operator(self, node: ast.AST) -> None:
        assert isinstance(node, ast.BinOp)
        if isinstance(node.op, ast.MatMult) and not self._language.library_calls and id(node) not in self._device:
            self.found.add("vendor_fallback", node)

    def _constant(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Constant)
        value = node.value
        if (
            isinstance(value, str | bytes)
            and len(value) >= PAYLOAD_CHARACTERS
            and max(map(len, value.split()), default=0) >= PAYLOAD_CHARACTERS
        ):
            self.found.add("serialized_payload", node)

    def _class(self, node: ast.AST) -> None:
        assert isinstance(node, ast.ClassDef)
        bases = {self.names.resolve(base) for base in node.bases}
        own = {one.name for one in node.body if isinstance(one, Function)}
        if "torch.Tensor" in bases or own & _INTERCEPTS:
            self.found.add("patching", node)

    def _try(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Try | ast.TryStar)
        if any(_calls(statement) for statement in node.body):
            for handler in node.handlers:
                if not isinstance(handler.body[-1], ast.Raise):
                    self.found.add("fallback_on_error", handler)

    def _with(self, node: ast.AST) -> None:
        assert isinstance(node, ast.With)
        for item in node.items:
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            if self.names.resolve(called) == "contextlib.suppress":
                self.found.add("fallback_on_error", item.context_expr)


def _last_name(node: Expression) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.Call) for one in walk(statement))
