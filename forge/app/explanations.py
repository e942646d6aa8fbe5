"""Reads what `docs/errors.md` says of a code. The page is part of the wheel, and of a checkout."""

import re
from dataclasses import dataclass
from pathlib import Path

import forge
from forge.errors import UnknownName, near_names

_PACKAGE = Path(forge.__file__).parent
PLACES = (_PACKAGE / "_docs" / "errors.md", _PACKAGE.parent / "docs" / "errors.md")
"""Places of the page: in an installed wheel, and in a checkout."""
_KINDS = {"Error codes": "an error code", "Reason codes": "a reason code"}
_SECTION = re.compile(r"^## ([A-Z][A-Z_]*)$")


@dataclass(frozen=True)
class Explanation:
    """What the page says of one code."""

    code: str
    kind: str
    text: str


def explanation(untrusted_code: str) -> Explanation:
    """Return the section of a code, in any case of letters; raise UnknownName with the nearest ones."""
    known = explanations()
    wanted = untrusted_code.strip().upper().replace("-", "_")
    if wanted not in known:
        raise UnknownName("code", untrusted_code, list(known), near=near_names(wanted, known))
    return known[wanted]


def explanations() -> dict[str, Explanation]:
    """Return every code's section, in the order of the page."""
    page = next(place for place in PLACES if place.is_file()).read_text(encoding="utf-8")
    kind, code, sections = "", "", dict[str, list[str]]()
    kinds: dict[str, str] = {}
    for line in page.splitlines():
        section = _SECTION.match(line)
        if line.startswith("# "):
            kind, code = _KINDS.get(line.removeprefix("# "), ""), ""
        elif section:
            code = section[1]
            sections[code], kinds[code] = [], kind
        elif code:
            sections[code].append(line)
    return {name: Explanation(name, kinds[name], "\n".join(lines).strip()) for name, lines in sections.items()}
