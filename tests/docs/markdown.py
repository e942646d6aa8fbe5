"""The documentation's pages, taken apart: fenced blocks, headings, links."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CLAIMS.md")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page, relative to the root."""
    return [*TOP, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(*languages: str) -> list[Block]:
    """Every fenced block in one of these languages."""
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for page in pages()
        for text in (read(page),)
        for match in _FENCE.finditer(text)
        if match[1] in languages
    ]


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", read(page))


def headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)


def anchor(heading: str) -> str:
    """As GitHub makes it: lower case, punctuation gone, spaces to dashes."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(page: str) -> list[str]:
    return _LINK.findall(prose(page))
