"""Names the line of kernel.py with which to begin, where no compiler and no traceback names one.

The host reads the source for it; nothing of the candidate runs. A hint is no finding, and no verdict uses it.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from forge.domain.parsed_source import parse_source
from forge.domain.source_finding import FindingKind
from forge.lab.sources.changed_input import changed_input
from forge.lab.sources.comes_from import comes_from
from forge.lab.sources.kept_operand import called_name, computed_before, kept_operand
from forge.languages import find_language

ABOUT_FORM = frozenset({"INCORRECT_SHAPE", "INCORRECT_DTYPE", "INCORRECT_STRIDES"})
"""Reason codes about a tensor's form. In every language the code in Python decides the form."""
STATED = frozenset({"STATIC_POLICY", "BAD_SUBMISSION"})
"""Reason codes whose own message or findings name the line, so that no line is looked for here."""
ABOUT_MEMORY = frozenset({"STATE_CARRIED"})
"""Reason codes of a kernel whose answer depends on earlier calls. The line may be a `global`, or change shared
state."""
KERNEL = "kernel.py"
BY_FINDING: tuple[tuple[frozenset[str], frozenset[FindingKind], str], ...] = (
    (frozenset({"REPLAYED_OUTPUT", "STATE_CARRIED"}), frozenset({"state"}), "keeps a value between calls"),
    (ABOUT_MEMORY, frozenset({"patching", "environment", "randomness"}), "may change what the process shares"),
)
"""Reason codes, kinds of findings that name the line for these, and words for what such a line does."""
MUTATED = frozenset({"INPUT_MUTATED"})
"""Reason codes for which a line that writes to an input is looked for."""
UNCALLED = frozenset({"FALLBACK"})
"""Reason codes of an entry point that launches no kernel."""
UNBUILT = frozenset({"COMPILE_ERROR"})
"""Reason codes for which a build that no import starts is looked for. A compiler's own words name their line."""
ENDLESS = frozenset({"TIMEOUT"})
"""Reason codes for which a loop is looked for."""
WRONG_VALUES = frozenset({"INCORRECT_NUMERICAL", "NON_FINITE", "WRONG_OUTSIDE_DOMAIN"})
"""Reason codes of a wrong value. For these the answer also names the lines that computed the value."""
OUTSIDE = frozenset({"OUT_OF_BOUNDS", "RUNTIME_ERROR"})
"""Reason codes of an access outside a tensor. A call that ended by a signal may have made one as well."""
NAMED_CALLS = {
    "OUT_OF_MEMORY": (
        frozenset({"empty", "zeros", "ones", "full", "rand", "randn", "arange", "repeat"}),
        "allocates",
    ),
    "RESOURCE_ABUSE": (frozenset({"print", "write"}), "prints"),
}
"""Reason code -> names of calls in Python that often cause it, and a verb that says what these calls do."""
SMALLEST_BLOCK = 8
"""Smallest number that is taken for a block's size. Chosen: smaller ones stand in a source by chance."""
MOST_ARGUMENTS = 64
"""Number of arguments whose writes are looked for, at most; a contract has no more operands. Each reads the text."""
SHOWN_COLUMNS = 200
"""Number of characters of the line that are shown, at most. Chosen; a refusal stays on a few lines."""

_ARGUMENTS = re.compile(r"^TypeError: [\w.]+\(\) (?:takes|missing|got) ")
"""Python's words for a call whose arguments don't fit the function's."""

_POINTER = re.compile(r"\*\s*(?:__restrict(?:__)?\s+)?(?P<name>[A-Za-z_]\w*)\s*$")
_UNCOUNTED = re.compile(r"^(?!\s*(?:#|//)).*(?:\bwhile\s*\(|\bfor\s*\(\s*;\s*;)|^\s*while\b[^#]*:\s*(?:#|$)")
"""Line with `while` or `for (;;)`, in C++ or in Python, that isn't a comment."""


@dataclass(frozen=True)
class LineToMend:
    """A line of kernel.py, and what it does."""

    line: int
    source: str
    does: str
    called_by: "LineToMend | None" = None
    """The line of the entry point that launches what computes: its arguments and its grid may be what is wrong."""
    comes_from: "tuple[LineToMend, ...]" = ()
    """The lines of the same function that the written value is computed from, where the value is wrong."""

    def document(self) -> dict[str, object]:
        """Return the place for a JSON document."""
        called_by = None if self.called_by is None else {"line": self.called_by.line, "source": self.called_by.source}
        place = {"file": KERNEL, "line": self.line, "source": self.source, "does": self.does}
        before = [{"line": one.line, "source": one.source} for one in self.comes_from]
        return {**place, "called_by": called_by, "comes_from": before}


def place_to_mend(
    kernel: bytes,
    *,
    entry: str,
    language: str,
    code: str,
    untrusted_error: str | None = None,
    wrong_output: str | None = None,
    wrong_from: int | None = None,
    findings: Iterable[tuple[str, str, int]] = (),
) -> LineToMend | None:
    """Return the line that a refusal with this reason code is about; None if the source doesn't show one.

    `wrong_output` is the output whose values were wrong; None if none was compared. `wrong_from` is the index from
    which on they were, if there is one. `findings` are kind, file and line of what was found in the sources.
    """
    text = kernel.decode(errors="replace")
    try:
        module = parse_source(text)
    except SyntaxError as error:
        return _place(text, error.lineno, "can't be parsed")
    function = _entry(module, entry)
    if function is None:
        return _place(text, 1, f"begins a file without {entry}")
    if code in STATED:
        return None
    in_kernel = [(kind, line) for kind, file, line in findings if file == KERNEL]
    for codes, kinds, does in BY_FINDING:
        found_at = next((line for kind, line in in_kernel if kind in kinds), None)
        if code in codes and found_at is not None:
            return _place(text, found_at, does)
    if code in UNBUILT and (late := _late_build(module)) is not None:
        return _place(text, late, "builds in a function, which no import calls")
    if code in WRONG_VALUES and (early := computed_before(module, entry)) is not None:
        return _place(text, early, "computes from weights before they are given")
    named = _in_function(text, function, code, untrusted_error) or _with_number(text, wrong_from)
    if named is not None:
        return named
    found = _of_outputs(text, module, function, language=language, code=code, wrong_output=wrong_output)
    return _with_sources(text, found) if found is not None and code in WRONG_VALUES else found


def _with_sources(text: str, place: LineToMend) -> LineToMend:
    """Return the place with the lines that its value is computed from."""
    before = (_place(text, line, "is computed before") for line in comes_from(text, place.line))
    return replace(place, comes_from=tuple(one for one in before if one is not None))


def _in_function(text: str, function: ast.FunctionDef, code: str, untrusted_error: str | None) -> LineToMend | None:
    """Return the line of the entry point that the reason itself names; None if it names none."""
    if code in UNCALLED:
        return _place(text, function.lineno, "launches no kernel")
    if untrusted_error is not None and _ARGUMENTS.match(untrusted_error) and function.name in untrusted_error:
        return _place(text, function.lineno, "doesn't take the operation's arguments")
    nodes = _own_nodes(function)
    if code in MUTATED:
        arguments = [one.arg for one in function.args.args[:MOST_ARGUMENTS]]
        written = [(line, name) for name in arguments if (line := _last_write(text, name)) is not None]
        changed = changed_input(function) or min(written, default=None)
        return None if changed is None else _place(text, changed[0], f"writes to the input {changed[1]}")
    if code in OUTSIDE and "CDLL" in text and ".argtypes" not in text:
        call = next((one.lineno for one in nodes if isinstance(one, ast.Call) and any(map(_address, one.args))), None)
        return _place(text, call, "passes addresses to a function without argtypes: ctypes cuts them to 32 bits")
    if code in WRONG_VALUES:
        return _place(text, kept_operand(function), "keeps a value of operands that change between calls")
    if code in ABOUT_MEMORY:
        return _first(text, nodes, (ast.Global, ast.Nonlocal), "keeps a value between calls")
    if code in NAMED_CALLS:
        names, does = NAMED_CALLS[code]
        calls = [one.lineno for one in nodes if isinstance(one, ast.Call) and called_name(one) in names]
        return _place(text, min(calls, default=None), does)
    if code not in ENDLESS:
        return None
    return _first(text, nodes, (ast.While,), "is a loop") or _place(text, _loop(text), "is a loop")


def _late_build(module: ast.Module) -> int | None:
    """Return the first line of a function or method that builds an extension; None without one."""
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    calls = (node for function in functions for node in _own_nodes(function) if isinstance(node, ast.Call))
    return min((one.lineno for one in calls if called_name(one) == "load_inline"), default=None)


def _loop(text: str) -> int | None:
    """Return the first line with a loop that counts nothing, in any function; None without one."""
    found = (place for place, line in enumerate(text.splitlines(), 1) if _UNCOUNTED.search(line))
    return next(found, None)


def _with_number(text: str, wrong_from: int | None) -> LineToMend | None:
    """Return the only line with the number from which on an output is wrong, such as that of a fixed block."""
    if wrong_from is None or wrong_from < SMALLEST_BLOCK:
        return None
    pattern = re.compile(rf"(?<![\w.]){wrong_from}(?![\w.])")
    found = [place for place, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    does = f"has the number {wrong_from}, the index from which on the output is wrong"
    return _place(text, found[0], does) if len(found) == 1 else None


def _of_outputs(
    text: str, module: ast.Module, function: ast.FunctionDef, *, language: str, code: str, wrong_output: str | None
) -> LineToMend | None:
    """Return the line that computes the outputs; of a wrong form, or where none shows, the one that returns them."""
    nodes = _own_nodes(function)
    returns = [node.lineno for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    if not returns:
        return _place(text, function.lineno, "is a function without a return value")
    marked = find_language(language).computes
    if marked is not None and code not in ABOUT_FORM:
        unmasked = _unmasked(module) if code in OUTSIDE and language == "triton" else None
        if unmasked is not None:
            return _place(text, unmasked, "has no mask", called_by=_launch(text, nodes))
        written = _last_write(text, wrong_output) if wrong_output is not None else None
        if written is not None:
            return _place(text, written, f"writes {wrong_output}", called_by=_launch(text, nodes))
        found = next((place for place, line in enumerate(text.splitlines(), 1) if marked in line), None)
        only = _only_write(text, marked) if code in WRONG_VALUES else None
        if only is not None:
            return _place(text, only[0], f"writes {only[1]}", called_by=_launch(text, nodes))
        if found is not None:
            return _place(text, found, "computes the outputs", called_by=_launch(text, nodes))
    return _place(text, max(returns), "returns the outputs")


def _only_write(text: str, marked: str) -> tuple[int, str] | None:
    """Return the last line that writes through the only pointer that a marked function may write to, and its name."""
    _, _, after = text.partition(marked)
    parameters = after.partition("(")[2].partition(")")[0].split(",")
    pointers = [_POINTER.search(one) for one in parameters if "const" not in one]
    names = [one["name"] for one in pointers if one is not None]
    line = _last_write(text, names[0]) if len(names) == 1 else None
    return None if line is None else (line, names[0])


def _last_write(text: str, output: str) -> int | None:
    """Return the last line that writes to memory by an output's name, in C++ or through Triton; None if none does."""
    name = re.escape(output)
    indexed = rf"(?<![\w.>]){name}\s*\[[^\n]{{0,200}}?\]\s*+(?:[-+*/|&^]|<<|>>)?=(?!=)"  # bounded: many brackets
    stored = rf"\btl\.(?:store|atomic_\w+)\(\s*{name}\b"
    start = max((one.start() for one in re.finditer(rf"{indexed}|{stored}", text)), default=None)
    return None if start is None else text.count("\n", 0, start) + 1


def _unmasked(module: ast.Module) -> int | None:
    """Return the first line with a `tl.load` or `tl.store` without a mask; None without one."""
    allowed = {"load": 1, "store": 2}  # positional arguments before the mask
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    found = [
        one.lineno
        for one in calls
        if isinstance(one.func, ast.Attribute)
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id == "tl"
        and len(one.args) <= allowed.get(one.func.attr, -1)
        and not any(word.arg in ("mask", None) for word in one.keywords)
    ]
    return min(found, default=None)


def _first(text: str, nodes: list[ast.AST], kinds: tuple[type[ast.stmt], ...], does: str) -> LineToMend | None:
    return _place(text, min((node.lineno for node in nodes if isinstance(node, kinds)), default=None), does)


def _entry(module: ast.Module, entry: str) -> ast.FunctionDef | None:
    """Return the entry point's function; of a class, its method forward."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            return node
        if isinstance(node, ast.ClassDef) and node.name == entry:
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            return next((one for one in methods if one.name in ("forward", "__call__")), None)
    return None


def _own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """Return the nodes of a function without those of functions inside it."""
    found: list[ast.AST] = []
    rest: list[ast.AST] = list(function.body)
    while rest:
        node = rest.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.AsyncFunctionDef):
            rest.extend(ast.iter_child_nodes(node))
    return found


def _launch(text: str, nodes: list[ast.AST]) -> LineToMend | None:
    """Return the first call of `kernel[grid](...)`, or of a function that is given addresses."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    launches = [one.lineno for one in calls if isinstance(one.func, ast.Subscript) or any(map(_address, one.args))]
    return _place(text, min(launches, default=None), "calls it")


def _address(argument: ast.expr) -> bool:
    named = argument.func if isinstance(argument, ast.Call) else None
    return isinstance(named, ast.Attribute) and named.attr == "data_ptr"


def _place(text: str, line: int | None, does: str, *, called_by: LineToMend | None = None) -> LineToMend | None:
    lines = text.splitlines()
    if line is None or not 1 <= line <= len(lines):
        return None
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in lines[line - 1].strip())
    return LineToMend(line=line, source=shown[:SHOWN_COLUMNS], does=does, called_by=called_by)
