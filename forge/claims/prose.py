"""Parses Markdown into what a reader sees, with the line of each piece.

The author of the page isn't trusted. Comments aren't prose, and are read for two marks only:

    <!-- measured: figures.json -->     from here to the end of the section
    <!-- not a claim: why -->           the next block
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

from forge.errors import UsageError

NESTING_LIMIT = 60
"""Largest depth of nested blocks, more than a page needs. The parser drops what is deeper, so the page is refused."""
LENGTH_LIMIT = 20_000
"""Largest number of characters in one passage; a longer one isn't prose."""
BRACKETS_LIMIT = 500
"""Largest number of opening brackets in one passage. For each the parser searches the rest of the passage for a
link's end."""
_MARK = re.compile(r"<!--\s*+(measured|not a claim)\s*+:(.*?)-->", re.DOTALL)
"""Pattern of the comment by which a page says where a number comes from, or that it is no claim."""
_COMMENT = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))|<!\[CDATA\[[^>]*>", re.DOTALL)
"""A comment as browsers read it (WHATWG HTML, 13.2.5). `<!-->` and `<!--->` are whole comments, `--!>` closes one,
and `>` closes what begins as CDATA."""
_JOINED = re.compile(
    "a|abbr|b|bd[io]|cite|code|data|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|su[bp]|time|tt|u"
    "|var|wbr"
)
"""Tags that don't separate the text before them from the text behind them; all others do."""
_SHOWN = ("alt", "title", "aria-label", "placeholder", "value")
"""Attributes whose text a reader sees or hears."""
_DRAWN = ("mermaid", "math")
"""Languages of code blocks that are shown as pictures or formulas, so their text is always read."""


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A paragraph, a heading, a row of a table, or another piece that is read as one."""

    line: int
    """Number of its first line, from 1."""
    text: str
    """The text without markup; ` | ` separates the cells of a row."""
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    """Names of the columns of a row."""
    measured: str | None = None
    """The file that is said to hold its figures, as a link from the page would name it."""
    aside: str | None = None
    """Reason that the page gives why it is no claim."""


def passages(untrusted_text: str, *, code: bool = False) -> Iterator[Passage]:
    """Yield a page's passages in order; blocks of code only with `code`. Raise UsageError for too deep a nesting."""
    parser = MarkdownIt("commonmark", {"maxNesting": NESTING_LIMIT}).enable("table")
    _require_readable(parser, untrusted_text)
    yield from _ProseReader(code=code).read(parser.parse(untrusted_text))


def _require_readable(parser: MarkdownIt, untrusted_text: str) -> None:
    """Raise UsageError for blocks too deep or too long, before their text is parsed, which takes quadratic time."""
    with parser.reset_rules():
        parser.core.ruler.disable("inline")
        blocks = parser.parse(untrusted_text)
    for token in blocks:
        if token.level >= NESTING_LIMIT - 2:
            raise UsageError(f"a block is nested {NESTING_LIMIT - 2} deep: expected a page of fewer levels")
        if token.type in ("inline", "html_block"):
            _require_short(token.content, _line(token))
        brackets = token.content.count("[")
        if token.type == "inline" and brackets > BRACKETS_LIMIT:
            where = f"the passage at line {_line(token)}"
            raise UsageError(f"{where} has {brackets} of '[': expected at most {BRACKETS_LIMIT}")


def _require_short(text: str, line: int) -> None:
    if len(text) > LENGTH_LIMIT:
        raise UsageError(f"the passage at line {line} is too long: expected at most {LENGTH_LIMIT} characters")


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 1


class _ProseReader:
    """Reads a page's tokens once, and keeps the marks that hold at the current token."""

    def __init__(self, *, code: bool) -> None:
        self._code = code
        self._heading = 0
        self._measured: list[tuple[int, str]] = []
        """Marks, each with the level of the heading whose section it holds for."""
        self._aside: str | None = None
        self._aside_level: int | None = None
        """Level of the block that is set aside; None before it begins."""
        self._row_line = 1
        self._cells: list[str] = []
        self._header: tuple[str, ...] = ()

    def read(self, tokens: Iterable[Token]) -> Iterator[Passage]:
        """Yield every passage, in order."""
        within = ""
        for token in tokens:
            if self._aside is not None and self._aside_level is None and token.nesting >= 0 and not _is_mark(token):
                self._aside_level = token.level
            yield from self._passages(token, within)
            if token.nesting <= 0 and token.level == self._aside_level:
                self._aside, self._aside_level = None, None
            within = token.type

    def _passages(self, token: Token, within: str) -> Iterator[Passage]:
        """Yield the passages that end at a token; `within` is the type of the token before it."""
        line = _line(token)
        match token.type:
            case "heading_open":
                self._heading = int(token.tag[1:])
                self._measured = [(level, path) for level, path in self._measured if level < self._heading]
            case "html_block":
                self._mark(token.content)
                yield from self._made(line, _visible(token.content))
            case "fence" | "code_block" if self._code or token.info.partition(" ")[0] in _DRAWN:
                first = line + (token.type == "fence")
                for place, text in enumerate(token.content.splitlines()):
                    yield from self._made(first + place, text)
            case "inline" if within in ("paragraph_open", "heading_open"):
                yield from self._made(line, _read(token))
            case "tr_open":
                self._row_line, self._cells = line, []
            case "inline":
                self._cells.append(_read(token))
            case "thead_open" | "tbody_open":
                self._header = () if token.type == "thead_open" else tuple(self._cells)
            case "tr_close":
                cells = tuple(self._cells) if self._header else ()
                yield from self._made(self._row_line, " | ".join(self._cells), cells=cells, header=self._header)

    def _made(
        self, line: int, text: str, *, cells: tuple[str, ...] = (), header: tuple[str, ...] = ()
    ) -> Iterator[Passage]:
        if text.strip():
            _require_short(text, line)
            measured = self._measured[-1][1] if self._measured else None
            yield Passage(line=line, text=text, cells=cells, header=header, measured=measured, aside=self._aside)

    def _mark(self, content: str) -> None:
        for word, named in _MARK.findall(content):
            said = named.strip()
            if word == "measured" and said:
                self._measured.append((self._heading, said))
            elif said:
                self._aside, self._aside_level = said, None


def _is_mark(token: Token) -> bool:
    return token.type == "html_block" and not _visible(token.content).strip()


def _read(inline: Token) -> str:
    """Return the text of a paragraph without markup, with its line breaks."""
    parts: list[str] = []
    for child in inline.children or []:
        match child.type:
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(f" {_read(child)} {child.attrGet('title') or ''} ")
            case "link_open" if title := child.attrGet("title"):
                parts.append(f" {title} ")
            case "html_inline":
                parts.append(_visible(child.content))
            case _:
                parts.append(child.content)
    return "".join(parts)


class _Text(HTMLParser):
    """The text that a browser shows of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts += ["^" if tag == "sup" else "" if _JOINED.fullmatch(tag) else " "]
        self.parts += [f" {value} " for name, value in attrs if name in _SHOWN and value]

    def handle_endtag(self, tag: str) -> None:
        self.parts += ["" if _JOINED.fullmatch(tag) else " "]


def _visible(content: str) -> str:
    text = _Text()
    text.feed(_COMMENT.sub("", content))
    text.close()
    return "".join(text.parts)
