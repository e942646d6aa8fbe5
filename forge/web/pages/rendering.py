"""Renders pages. Every text is escaped, and characters that control or hide text are shown by their numbers."""

import unicodedata
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from forge.web.pages.rows import FILTERS

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"
KEPT_CONTROLS = frozenset("\n\t")
"""Control characters that are shown as they are."""
WITHOUT_KEPT = dict.fromkeys(map(ord, KEPT_CONTROLS))
"""Table for `str.translate` that leaves the characters of KEPT_CONTROLS out."""
HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of Unicode of characters that control, reorder or hide what is beside them."""
LONGEST_CELL = 4000
"""Largest number of characters of one text in a page, so that no author's text fills it. Files are shown whole."""
WHOLE, PLAIN_LIMIT = 1000, 1e15
"""Numbers from WHOLE on are shown without decimals; those from PLAIN_LIMIT on as powers of ten."""


def visible(text: str) -> str:
    """Return a text with characters that control or hide text replaced by their numbers."""
    plain = text.translate(WITHOUT_KEPT)
    if plain.isascii() and plain.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(one):x}}}" if unicodedata.category(one) in HIDING and one not in KEPT_CONTROLS else one
        for one in text
    )


def shown(value: object) -> object:
    """Return what a page shows for a value: text without hiding characters, of a bounded length; numbers short."""
    match value:
        case Markup():
            return value
        case str():
            cut = value if len(value) <= LONGEST_CELL else f"{value[:LONGEST_CELL]} [...]"
            return visible(cut)
        case bool():
            return "yes" if value else "no"
        case None:
            return ""
        case () | [] | {} if not value:
            return "none"
        case float():
            return f"{value:.0f}" if WHOLE <= abs(value) < PLAIN_LIMIT else f"{value:.4g}"
        case dict():
            known = (f"{name}={shown(inner)}" for name, inner in value.items() if inner is not None)
            return visible(", ".join(known))[:LONGEST_CELL]
        case list() | tuple():
            return visible(", ".join(str(shown(one)) for one in value))[:LONGEST_CELL]
        case _:
            return value


def whole(text: str) -> Markup:
    """Return the full text, escaped; characters that hide others are made visible."""
    return Markup.escape(visible(text))


def short(digest: object) -> str:
    """Return the first twelve characters of a digest."""
    return str(digest)[:12] if digest else ""


@cache
def environment() -> Environment:
    """Return the templates of the pages, in an environment of their own."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters |= {"whole": whole, "short": short, "shown": shown, **FILTERS}
    return made


def rendered(template: str, content: dict[str, object]) -> str:
    """Return a page as HTML: a template, filled with its content."""
    return environment().get_template(f"{template}.html.j2").render(content)
