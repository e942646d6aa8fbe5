"""Places in a candidate's sources that a reader should look at. Syntax alone finds them; none is a verdict."""

from typing import Annotated, Literal

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
Position = Annotated[int, Field(ge=1)]


class SourceFinding(Value):
    """One place in a submitted file, and the reason to look at it."""

    kind: FindingKind
    file: str
    line: Position
    column: Position
    """Column of the first character, counted from 1."""
    end_line: Position
    end_column: Position
    """Column after the last character, counted from 1."""
    untrusted_excerpt: str
    """Source text at this place: one line, control characters escaped, shortened if long."""
    why: str
    further: Annotated[int, Field(ge=0)] = 0
    """Number of further places of this kind in this file that aren't listed."""
