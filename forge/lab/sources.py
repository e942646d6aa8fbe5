"""Reads a candidate's sources without running them: do they parse, define the entry point, use the language?

By syntax tree, never by text pattern. This explains and saves time; it is not the wall.
"""

import ast

from forge.domain.candidate import Metadata
from forge.domain.task import LanguageName
from forge.domain.verdict import Reason
from forge.lab.finding import Failed, Finding, Passed


def examine_sources(kernel: str, *, metadata: Metadata, language: LanguageName, entry_point: str) -> Finding:
    """Screen kernel.py."""
    try:
        tree = ast.parse(kernel, filename="kernel.py")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the parser's stack is its memory
        return _failed("COMPILE_ERROR", f"kernel.py doesn't parse: {error or 'nested too deeply'}")
    if entry_point not in _top_level_names(tree):
        return _failed(
            "BAD_SUBMISSION",
            f"kernel.py defines no {entry_point!r}; name it, or set entry_point in metadata.json",
        )
    missing = _language_missing(tree, metadata, language)
    if missing is not None:
        return _failed("STATIC_POLICY", missing)
    return Passed(observed=f"{language}, entry point {entry_point}", threshold="parses, and uses its language")


def cpp_source(kernel: str, name: str) -> str | None:
    """The text of the module-level string constant `name`; None if there is no such constant."""
    return _string_constant(ast.parse(kernel), name)


def _string_constant(tree: ast.Module, name: str) -> str | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if isinstance(node, ast.Assign) and named and isinstance(node.value, ast.Constant):
            return node.value.value if isinstance(node.value.value, str) else None
    return None


def _top_level_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _language_missing(tree: ast.Module, metadata: Metadata, language: LanguageName) -> str | None:
    if language == "triton" and not _has_triton_kernel(tree):
        return "a triton candidate needs a function decorated with triton.jit; kernel.py has none"
    if language == "cpp":
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        }
        if metadata.cpp is None and not called & {"load_inline", "load"}:
            return (
                "a cpp candidate calls torch.utils.cpp_extension.load_inline, or names its C++ text in "
                "metadata.json under cpp.source; kernel.py does neither"
            )
        if metadata.cpp is not None and _string_constant(tree, metadata.cpp.source) is None:
            return f"kernel.py has no module-level string constant {metadata.cpp.source!r}, named in metadata.json"
    return None


def _has_triton_kernel(tree: ast.Module) -> bool:
    decorators = (
        decorator.func if isinstance(decorator, ast.Call) else decorator
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    )
    return any(_dotted(decorator) in ("triton.jit", "jit") for decorator in decorators)


def _dotted(node: ast.expr) -> str:
    """`a` or `a.b` as it was written; anything deeper is no name of ours, and may be nested without end."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _failed(code: str, message: str) -> Failed:
    reason = Reason.model_validate({"code": code, "message": message})
    return Failed(reason=reason, observed=message, threshold="parses, and uses its language")
