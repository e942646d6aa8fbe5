"""Reads a candidate's sources without running them: do they parse, define the entry point, use the language?

It uses the syntax tree, never text patterns. This explains and saves time; it is not the wall. Places that only
deserve a look are listed (forge/lab/triage). Refused are constructs that the language's contract forbids, and a
kernel that is provably never launched.
"""

import ast
import io
import tokenize
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from forge.domain.candidate import Metadata
from forge.domain.parsed_source import LongToken, parse_source
from forge.domain.source_finding import FindingKind, SourceFinding
from forge.domain.verdict import Reason
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.triage import triage
from forge.lab.triage.cpp_tokens import tokens
from forge.lab.triage.names import Names
from forge.lab.triage.reach import is_jit
from forge.lab.triage.walk import Function, walk
from forge.languages import Language

_THRESHOLD = "parses, uses its language, and nothing that is forbidden"
"""Words for what the screening of sources allows."""


@dataclass(frozen=True)
class ScreenedSources:
    """The result of reading the sources."""

    finding: Finding
    findings: tuple[SourceFinding, ...] = ()
    """Places that a person should look at, whatever the result."""


def examine_sources(
    kernel: str,
    *,
    metadata: Metadata,
    language: Language,
    entry_point: str,
    forbids: AbstractSet[FindingKind] = frozenset(),
) -> ScreenedSources:
    """Read kernel.py without running it; return the verdict, and the places that a person should look at.

    A finding of a kind in `forbids` refuses the kernel.
    """
    tree = parse_kernel(kernel)
    if isinstance(tree, Failed):
        return ScreenedSources(tree)
    if entry_point not in _top_level_names(tree):
        return ScreenedSources(
            _failed(
                "BAD_SUBMISSION",
                f"kernel.py defines no {entry_point!r}; name it, or set entry_point in metadata.json",
            )
        )
    missing = _language_missing(tree, metadata, language)
    if missing is not None:
        return ScreenedSources(_failed("STATIC_POLICY", missing))
    seen = triage(tree, kernel, metadata=metadata, language=language, entry_point=entry_point)
    forbidden = next((one for one in seen.findings if one.kind in forbids), None)
    if forbidden is not None:
        return ScreenedSources(_forbidden(forbidden, language.name), seen.findings)
    if language.decorated and seen.launches_no_kernel:
        message = f"{entry_point} launches no kernel: none of kernel.py's triton.jit functions can be reached from it"
        return ScreenedSources(_failed("FALLBACK", message), seen.findings)
    observed = f"{language.name}, entry point {entry_point}, {_count(seen.findings)}"
    return ScreenedSources(Passed(observed=observed, threshold=_THRESHOLD), seen.findings)


def parse_kernel(kernel: str) -> ast.Module | Failed:
    """Return the syntax tree of kernel.py, or why there is none.

    Python must run the same text that is read here. A first line may declare another encoding (PEP 263), in which a
    comment has line ends that UTF-8 hasn't.
    """
    declared = _declared_encoding(kernel)
    if declared != "utf-8":
        return _failed("STATIC_POLICY", f"kernel.py says that its text is {declared!r}, expected 'utf-8': save it so")
    try:
        return parse_source(kernel, filename="kernel.py")
    except LongToken as long:
        return _failed("STATIC_POLICY", f"kernel.py, {long}")
    except SyntaxError as error:
        return _failed("COMPILE_ERROR", f"kernel.py doesn't parse: {error}")


def _declared_encoding(kernel: str) -> str:
    try:
        return tokenize.detect_encoding(io.BytesIO(kernel.encode(errors="surrogatepass")).readline)[0]
    except SyntaxError as error:
        return str(error)


def _forbidden(found: SourceFinding, language: str) -> Failed:
    place = f"{found.file}:{found.line}:{found.column}"
    message = (
        f"{place}: {found.untrusted_excerpt} ({found.kind}): {found.why}; a {language} candidate may not, take it out"
    )
    return Failed(
        reason=Reason(code="STATIC_POLICY", message=message),
        observed=f"{found.kind} at {place}",
        threshold=_THRESHOLD,
    )


def _count(findings: tuple[SourceFinding, ...]) -> str:
    places = sum(1 + one.further for one in findings)
    return f"{places} place{'' if places == 1 else 's'} worth a look" if places else "no suspicious code found"


def source_text(kernel: str, name: str) -> str | None:
    """Return the text of the module-level string constant `name`; None if there is no such constant."""
    tree = parse_kernel(kernel)  # how deep it may be nested depends on the caller's stack
    return _string_constant(tree, name) if isinstance(tree, ast.Module) else None


def _string_constant(tree: ast.Module, name: str) -> str | None:
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if isinstance(node, ast.Assign | ast.AnnAssign) and named and isinstance(node.value, ast.Constant):
            return node.value.value if isinstance(node.value.value, str) else None
    return None


def _top_level_names(tree: ast.Module) -> set[str]:
    """Return the names that importing the module may bind, also under conditions; loading it shows whether it did."""
    names: set[str] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name)
        stack += ast.iter_child_nodes(node)
    return names


def _language_missing(tree: ast.Module, metadata: Metadata, language: Language) -> str | None:
    if language.decorated and not _has_triton_kernel(tree):
        return f"a {language.name} candidate needs a function that triton.jit compiles; kernel.py has none"
    if language.text is not None:
        return _text_missing(tree, metadata, language)
    return None


def _text_missing(tree: ast.Module, metadata: Metadata, language: Language) -> str | None:
    """Return what a language that is compiled from text lacks: the text, or the call that compiles it."""
    if metadata.build is None:
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in walk(tree)
            if isinstance(node, ast.Call)
        }
        if called & {"load_inline", "load"}:
            return None
        return (
            f"a {language.name} candidate calls torch.utils.cpp_extension.load_inline, or names its {language.text} "
            f"text in metadata.json under {language.name}.source; kernel.py does neither"
        )
    text = _string_constant(tree, metadata.build.source)
    if text is None:
        return (
            f"kernel.py has no module-level string constant {metadata.build.source!r}, named in metadata.json; "
            f"write it as one literal, without +, f-string or method; Forge reads it without running the file"
        )
    if language.device_code and all(token.text != "__global__" for token in tokens(text)):
        return f"a {language.name} candidate needs a __global__ function; {metadata.build.source} has none"
    return None


def _has_triton_kernel(tree: ast.Module) -> bool:
    nodes = list(walk(tree))
    names = Names(nodes)
    decorators = [decorator for node in nodes if isinstance(node, Function) for decorator in node.decorator_list]
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return any(is_jit(one, names) for one in (*decorators, *calls))


def _failed(code: str, message: str) -> Failed:
    reason = Reason.model_validate({"code": code, "message": message})
    return Failed(reason=reason, observed=message, threshold=_THRESHOLD)
