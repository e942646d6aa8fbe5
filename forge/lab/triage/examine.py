"""Applies every rule in one pass over the tree, then answers the questions that need the whole module."""

import ast
from dataclasses import dataclass

from forge.domain.candidate import Metadata
from forge.domain.source_finding import FindingKind, SourceFinding
from forge.lab.triage.collector import Collector
from forge.lab.triage.library import assignments, cpp_texts, loads_built_library, scan_constant
from forge.lab.triage.names import Names
from forge.lab.triage.reach import is_jit, reach
from forge.lab.triage.rules import ATTRIBUTES, METHODS, METHODS_OF_TENSORS, kind_of
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
    for statement in reached.unreached:
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

    def visit(self, node: ast.AST) -> None:
        """Apply the rules for a node's type."""
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
                self._expression(node)
            case ast.BinOp(op=ast.MatMult()) if not self._may_call_libraries(node):
                self.found.add("vendor_fallback", node)
            case ast.Constant(value=str() | bytes() as value):
                if max(map(len, value.split()), default=0) >= PAYLOAD_CHARACTERS:
                    self.found.add("serialized_payload", node)
            case _:
                self._statement(node)

    def _statement(self, node: ast.AST) -> None:
        match node:
            case ast.ClassDef():
                self._class(node)
            case ast.Try() | ast.TryStar() if any(_calls(statement) for statement in node.body):
                for handler in node.handlers:
                    if not isinstance(handler.body[-1], ast.Raise):
                        self.found.add("fallback_on_error", handler)
            case ast.withitem(context_expr=expression):
                called = expression.func if isinstance(expression, ast.Call) else expression
                if self.names.resolve(called) == "contextlib.suppress":
                    self.found.add("fallback_on_error", expression)

    def _is_kernel(self, node: ast.AST) -> bool:
        return isinstance(node, Function) and any(is_jit(one, self.names) for one in node.decorator_list)

    def _may_call_libraries(self, node: ast.AST) -> bool:
        """Return whether an operation of a tensor is no fallback: by the language, or in device code."""
        return self._language.library_calls or id(node) in self._device

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if kind_of(f"{module}{alias.name}") == "foreign_kernel":
                self.found.add("foreign_kernel", alias)

    def _expression(self, node: Expression) -> None:
        if id(node) in self._reported:
            return
        if isinstance(node, ast.Call):
            self._call(node)
        dotted = self.names.resolve(node)
        kind = "patching" if self._patches(node) else kind_of(dotted) if dotted else None
        if (kind == "vendor_fallback" and self._may_call_libraries(node)) or (
            kind == "foreign_code" and self._language.builds and str(dotted).startswith("torch.utils.cpp_extension")
        ):
            kind = None
        if kind is not None:
            self._mark_reported(node)
        else:
            kind = ATTRIBUTES.get(_last_name(node))
        if kind is not None and kind != "harmless":
            self.found.add(kind, node)

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
        elif method in METHODS_OF_TENSORS and not self._may_call_libraries(node):
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

    def _class(self, node: ast.ClassDef) -> None:
        bases = {self.names.resolve(base) for base in node.bases}
        own = {one.name for one in node.body if isinstance(one, Function)}
        if "torch.Tensor" in bases or own & _INTERCEPTS:
            self.found.add("patching", node)


def _last_name(node: Expression) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.Call) for one in walk(statement))
