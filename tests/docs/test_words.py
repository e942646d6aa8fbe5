"""Pages, docstrings and comments are plain English: they name who acts, and a docstring says what it is about.

CONTRIBUTING.md states the rules. Every page and every module is checked.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.markdown import ROOT, prose

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    *sorted(f"docs/how-to/{path.name}" for path in (ROOT / "docs" / "how-to").glob("*.md")),
)
WORDS = re.compile(r"\b(by lot|the lot|whoever|somebody|nobody|strangers?|the dead)\b", re.IGNORECASE)
"""Words that hide who acts, or that a reader must decode. The rules name each of them."""
OPENINGS = re.compile(r"(Of|So many|And|Likewise|The same)\b")
"""Beginnings of a docstring that can't be understood without what stands before it."""
MOST_WORDS = 25
"""Number of words that a sentence of a docstring may have, at most: the rule of CONTRIBUTING.md."""
HASHED = ("forge/operations", "oracle")
"""Folder and name of functions whose docstrings stay as they are: their source is part of each task's bound. A
comment above each says what it computes."""
QUOTED = re.compile(r'``.*?``|`[^`]*`|"[^"\n]*"|^> .*$', re.MULTILINE | re.DOTALL)
SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*] ")


class Text(NamedTuple):
    """A docstring or a comment, and the line on which it begins."""

    line: int
    content: str


def unquoted(text: str) -> str:
    """The text without code and quotations, on as many lines."""
    return QUOTED.sub(lambda match: "\n" * match[0].count("\n") or " X ", text)


def hidden_actors(text: str) -> list[str]:
    """Each forbidden word outside code and quotations, in lower case."""
    return [match[0].lower() for match in WORDS.finditer(" ".join(unquoted(text).split()))]


def docstrings(tree: ast.Module) -> Iterator[Text]:
    """Every string that stands alone: of modules, classes, functions, constants and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(node.lineno, node.value.value)


def comments(source: str) -> Iterator[Text]:
    """Every comment; those on lines that follow each other are one."""
    held: list[str] = []
    began = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if held and token.start[0] != began + len(held):
                yield Text(began, " ".join(held))
                held = []
            began = began if held else token.start[0]
            held.append(token.string.lstrip("# "))
    if held:
        yield Text(began, " ".join(held))


def attribute_docstrings(tree: ast.Module) -> Iterator[Text]:
    """Every string that follows an assignment in a module or a class."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef):
            continue
        for before, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                yield Text(after.lineno, after.value.value)


def definition_docstrings(path: Path) -> Iterator[Text]:
    """Every docstring of a function or a class, except of functions whose text is hashed."""
    folder, name = HASHED
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring is not None and (path.parent != ROOT / folder or node.name != name):
            yield Text(node.lineno, docstring)


def riddle(docstring: str) -> str | None:
    """What is wrong with a docstring, if anything is."""
    if found := OPENINGS.match(docstring):
        return f"begins with {found[0]!r}"
    for sentence in SENTENCE_ENDS.split(unquoted(docstring)):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if len(words) > MOST_WORDS:
            return f"{len(words)} words in a sentence"
    return None


def sources() -> list[Path]:
    return sorted((ROOT / "forge").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_who_acts(page: str) -> None:
    assert hidden_actors(prose(page)) == []


@pytest.mark.slow
def test_docstrings_and_comments_say_who_acts() -> None:
    for path in sources():
        source = path.read_text(encoding="utf-8")
        for text in (*docstrings(ast.parse(source)), *comments(source)):
            assert hidden_actors(text.content) == [], f"{path.relative_to(ROOT)}:{text.line}"


@pytest.mark.slow
def test_a_constants_docstring_says_what_it_is() -> None:
    for path in sources():
        for text in attribute_docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            assert riddle(text.content) is None, f"{path.relative_to(ROOT)}:{text.line}"


@pytest.mark.slow
def test_the_docstring_of_a_function_or_a_class_can_be_read_alone() -> None:
    for path in sources():
        for text in definition_docstrings(path):
            assert riddle(text.content) is None, f"{path.relative_to(ROOT)}:{text.line}"


def test_a_comment_says_what_each_oracle_computes() -> None:
    folder, name = HASHED
    for path in (ROOT / folder).glob("*.py"):
        before, found, _ = path.read_text(encoding="utf-8").partition(f"\ndef {name}(")
        assert not found or before.splitlines()[-1].startswith("# "), path.name


def test_a_forbidden_word_is_found_outside_code_and_quotations_only() -> None:
    assert hidden_actors("Whoever\nasks, and by\nlot.") == ["whoever", "by lot"]
    assert hidden_actors('Never write `by lot` or "nobody".\n\n> the dead') == []
    assert hidden_actors("a pilot, the lottery, an estranger") == []


def test_strings_and_comments_are_found_where_they_stand() -> None:
    source = 'A = 1\n"""Of A."""\n\n\nclass B:\n    c: int\n    """A field."""\n    # one\n    # two\n\n    # three\n'
    tree = ast.parse(source)
    assert [text.content for text in attribute_docstrings(tree)] == ["Of A.", "A field."]
    assert [text.content for text in docstrings(tree)] == ["Of A.", "A field."]
    assert [tuple(text) for text in comments(source)] == [(8, "one two"), (11, "three")]


@pytest.mark.parametrize(
    ("docstring", "wrong"),
    [
        ("Of those that run, the largest.", "begins with 'Of'"),
        ("So many calls at once.", "begins with 'So many'"),
        ("Office hours.", None),
        ("The same in fp64.", "begins with 'The same'"),
        ("Number of calls. " + "word " * 25 + "end.", "26 words in a sentence"),
        ("Number of calls. " + "word " * 24 + "end.", None),
    ],
)
def test_a_riddle_is_told_by_its_beginning_or_its_length(docstring: str, wrong: str | None) -> None:
    assert riddle(docstring) == wrong
