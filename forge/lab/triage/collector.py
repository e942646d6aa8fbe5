"""Collects places in a source as findings: positions in characters, excerpts that a terminal can show."""

import ast

from forge.domain.source_finding import FindingKind, SourceFinding

MOST_PLACES = 20
"""Number of listed places of one kind, at most; the last one says how many more there are. Chosen; a person reads the
list."""
EXCERPT_CHARACTERS = 100
"""Number of characters in an excerpt, at most. Chosen; it is about one line of a terminal."""

WHY: dict[FindingKind, str] = {
    "dynamic_import": "a module is chosen at run time: what is loaded can't be read off the source",
    "foreign_code": "native code is loaded that Forge didn't build from this candidate",
    "patching": "an object of another module is changed: others' calls may then do something else",
    "threads": "work may go on beside the call or after it",
    "environment": "the answer may depend on where it runs: a variable, an argument or a global setting",
    "frames": "the program reaches for its caller: its frames, all objects there are, or the harness's own modules",
    "introspection": "the program looks at its callers, at the interpreter or at raw memory",
    "files": "files are read or written: an answer could be kept there or come from there",
    "network": "a kernel has nothing to ask of the network",
    "processes": "a kernel has no business with other processes",
    "clock": "the time is read: a call that is timed could be told from one that isn't",
    "randomness": "the answer may depend on chance",
    "foreign_kernel": "a library of ready-made kernels is used",
    "vendor_fallback": "the vendor's library or torch may do the computation, not this candidate's kernel",
    "fallback_on_error": "an error is caught and something else is done instead of the kernel",
    "decoy_kernel": "a kernel is defined that the entry point never launches",
    "state": "values outlive a call: an answer could be remembered",
    "eval_exec": "text is run as a program: what it does can't be read off the source",
    "serialized_payload": "data is unpacked that a reader can't see through",
}
"""Reason to look at a finding, by kind."""


class Collector:
    """The findings in a candidate's kernel.py."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._found: dict[FindingKind, list[SourceFinding]] = {}
        self._further: dict[FindingKind, int] = {}
        self._places: set[tuple[FindingKind, int, int]] = set()

    def add(self, kind: FindingKind, node: ast.expr | ast.stmt | ast.excepthandler | ast.alias) -> None:
        """Record a node; a place counts once for each kind."""
        end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset + 1
        if not self._takes(kind, node.lineno, node.col_offset):
            return
        start = self._characters(node.lineno, node.col_offset)
        end = self._characters(end_line, end_offset)
        self._note(kind, (node.lineno, start), (end_line, max(end, start + 1) if end_line == node.lineno else end))

    def add_span(self, kind: FindingKind, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Record a place by its line, from 1, and its character, from 0."""
        if self._takes(kind, *start):
            self._note(kind, start, end)

    def kinds(self) -> set[FindingKind]:
        """Return the kinds that were found."""
        return set(self._found)

    def findings(self) -> tuple[SourceFinding, ...]:
        """Return all findings in the order of the file."""
        listed = []
        for kind, found in self._found.items():
            listed += [*found[:-1], found[-1].model_copy(update={"further": self._further.get(kind, 0)})]
        return tuple(sorted(listed, key=lambda one: (one.line, one.column, one.kind)))

    def _takes(self, kind: FindingKind, line: int, column: int) -> bool:
        if (kind, line, column) in self._places:
            return False
        self._places.add((kind, line, column))
        if len(self._found.setdefault(kind, [])) < MOST_PLACES:
            return True
        self._further[kind] = self._further.get(kind, 0) + 1
        return False

    def _note(self, kind: FindingKind, start: tuple[int, int], end: tuple[int, int]) -> None:
        line = self._line(start[0])
        stop = end[1] if end[0] == start[0] else len(line)
        self._found[kind].append(
            SourceFinding(
                kind=kind,
                file="kernel.py",
                line=start[0],
                column=start[1] + 1,
                end_line=end[0],
                end_column=end[1] + 1,
                untrusted_excerpt=excerpt(line[start[1] : min(stop, start[1] + 2 * EXCERPT_CHARACTERS)]),
                why=WHY[kind],
            )
        )

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if number <= len(self._lines) else ""

    def _characters(self, line: int, offset_bytes: int) -> int:
        return len(self._line(line).encode(errors="replace")[:offset_bytes].decode(errors="ignore"))


def excerpt(untrusted_text: str) -> str:
    """Return one line that a terminal can show: escaped, and cut."""
    cut = untrusted_text[:EXCERPT_CHARACTERS]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return shown + ("..." if len(untrusted_text) > EXCERPT_CHARACTERS else "")
