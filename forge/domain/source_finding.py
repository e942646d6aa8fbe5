"""What a reader of a candidate's sources should look at: found by syntax, never a verdict by itself."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from forge.domain.digest import Value

FindingKind = Literal[
    "dynamic_import",
    "foreign_code",
    "patching",
    "threads",
    "environment",
    "introspection",
    "frames",
    "files",
    "network",
    "processes",
    "clock",
    "randomness",
    "foreign_kernel",
    "vendor_fallback",
    "fallback_on_error",
    "decoy_kernel",
    "state",
    "eval_exec",
    "serialized_payload",
]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
Position = Annotated[int, Field(ge=1)]


class SourceFinding(Value):
    """One place in a submitted file, and why it matters."""

    kind: FindingKind
    file: str
    line: Position
    column: Position
    """In characters; the first is 1."""
    end_line: Position
    end_column: Position
    """The column behind the last character."""
    untrusted_excerpt: str
    """The source there: one line, control characters escaped, cut where it is long."""
    why: str
    further: Annotated[int, Field(ge=0)] = 0
    """How many more places of this kind in this file aren't listed."""
