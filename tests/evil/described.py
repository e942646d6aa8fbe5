"""What the first lines of a hostile candidate say about it; the generated page of attacks reads them as well."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forge.domain.tensors import DType, parse_dtype

CANDIDATES = sorted((Path(__file__).parent / "candidates").glob("*.py"))
CATALOGUE = {
    "A": "timing",
    "B": "the correctness check",
    "C": "reuse, caching, aliasing",
    "D": "fallback",
    "E": "input-dependent shortcuts",
    "F": "precision",
    "G": "environment, forged results",
    "H": "asynchronous or lazy",
    "I": "benign but wrong",
    "J": "escape, resources",
}
"""The groups of cheats and silent failures, by the letter of their entries."""
USUAL_OPERATION = "fused_add_rmsnorm"
"""Name of the operation of a candidate that names no other."""
LIMIT_S = 600.0
"""Processor seconds of a candidate that ends by itself, far more than it takes: a busy machine refuses nothing."""
BUILD_LIMIT_S = 240.0
"""Processor seconds of a build whose candidate names no other limit."""
_FIELDS = (
    *(
        "Refused by",
        "Accepted",
        "Catalogue",
        "Language",
        "Operation",
        "Dtype",
        "Shape",
        "Layouts",
        "Domain",
        "Build",
        "Build limit",
        "Limit",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Described:
    """A candidate's own description."""

    tries: str
    """The first sentence."""
    gate: str | None
    """None where it must be accepted; "any" where a race decides which call is the first to show it."""
    codes: tuple[str, ...]
    """More than one where a race or the machine decides which comes first."""
    why_accepted: str
    entries: tuple[str, ...]
    """Of the catalogue."""
    language: str
    operation: str
    dtype: DType
    shape: Mapping[str, int] | None
    """None is the usual one of the usual operation."""
    layouts: tuple[str, ...]
    """That it claims to take."""
    domain: Mapping[str, object] | None
    """That it declares."""
    extension: bool
    """Whether it is built by load_inline instead of from a string of C++."""
    build_limit_s: float
    """Processor seconds that the policy allows a build; text that is compiled alone has a fifth of them."""
    limit_s: float

    @property
    def groups(self) -> frozenset[str]:
        """The catalogue's groups that it belongs to."""
        return frozenset(entry[0] for entry in self.entries)


def described(path: Path) -> Described:
    """Read a candidate's first lines; it must say its entries, and either who refuses it or why it is accepted."""
    text = path.read_text(encoding="utf-8").split('"""')[1]
    prose, _, _ = text.partition("\n\n")
    fields = dict(re.findall(rf"^({'|'.join(_FIELDS)}): (.+)$", text, re.MULTILINE))
    gate, _, codes = fields["Refused by"].partition(" ") if "Refused by" in fields else (None, "", "")
    assert (gate is None) == ("Accepted" in fields), f"{path.name} must say one of both"
    return Described(
        tries=" ".join(prose.split()).partition(". ")[0].rstrip("."),
        gate=gate,
        codes=tuple(codes.split(" or ")) if codes else (),
        why_accepted=fields.get("Accepted", ""),
        entries=tuple(fields["Catalogue"].split()),
        language=fields.get("Language", "torch"),
        operation=fields.get("Operation", USUAL_OPERATION),
        dtype=parse_dtype(fields.get("Dtype", "fp32")),
        shape=json.loads(fields["Shape"]) if "Shape" in fields else None,
        layouts=tuple(fields.get("Layouts", "").split()),
        domain=json.loads(fields["Domain"]) if "Domain" in fields else None,
        extension=fields.get("Build") == "extension",
        build_limit_s=float(fields.get("Build limit", f"{BUILD_LIMIT_S} s").removesuffix(" s")),
        limit_s=float(fields.get("Limit", f"{LIMIT_S} s").removesuffix(" s")),
    )
