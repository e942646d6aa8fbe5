"""What the first lines of a kernel in the field's idiom say about it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forge.domain.tensors import DType, parse_dtype

CANDIDATES = sorted((Path(__file__).parent / "candidates").glob("*.py"))
_FIELDS = ("Refused by", "Accepted", "Twin of", "Language", "Operation", "Dtype", "Shape", "Layouts", "Domain")


@dataclass(frozen=True, kw_only=True)
class Described:
    """A kernel's own description."""

    gate: str | None
    """Gate that refuses it, or "any" if several may come first; None if it must be accepted."""
    codes: tuple[str, ...]
    """More than one where it depends on chance which call is the first to show it."""
    twin_of: str | None
    """Name of the right kernel that it is the wrong twin of."""
    language: str
    operation: str
    dtype: DType
    shape: Mapping[str, int] | None
    layouts: tuple[str, ...]
    domain: Mapping[str, Any] | None


def described(path: Path) -> Described:
    """Read a kernel's first lines; it says either why it is accepted, or who refuses it and whose twin it is."""
    text = path.read_text(encoding="utf-8").split('"""')[1]
    fields = dict(re.findall(rf"^({'|'.join(_FIELDS)}): (.+)$", text, re.MULTILINE))
    assert ("Accepted" in fields) != ("Refused by" in fields), path.name
    assert ("Twin of" in fields) == ("Refused by" in fields), path.name
    gate, _, codes = fields["Refused by"].partition(" ") if "Refused by" in fields else (None, "", "")
    return Described(
        gate=gate,
        codes=tuple(codes.split(" or ")),
        twin_of=fields.get("Twin of"),
        language=fields.get("Language", "torch"),
        operation=fields["Operation"],
        dtype=parse_dtype(fields.get("Dtype", "fp32")),
        shape=json.loads(fields["Shape"]) if "Shape" in fields else None,
        layouts=tuple(fields.get("Layouts", "").split()),
        domain=json.loads(fields["Domain"]) if "Domain" in fields else None,
    )
