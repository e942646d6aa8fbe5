"""A class name has one meaning in Forge, and its words are in the glossary."""

import re
from collections import Counter
from pathlib import Path

import forge

ROOT = Path(forge.__file__).parent
TWICE = {
    "Contract": "a guest can't import the domain's, and reads the same file",
    "Operand": "a guest and an adopting program can't import the domain's; a guest's own is a place in the arena",
    "Policy": "a reader's policy of a lookup, beside the policy of judging; both are public names",
    "Result": "what a lookup answers is a public name; the other is one result of a reference file",
}
"""Names that stand for two classes, with the reason."""
OFTEN = 5
"""Number of class names from which on a word in them belongs to Forge's own language."""
PLAIN = {
    "accepted", "asked", "captured", "check", "checked", "closed", "declared", "described", "error", "failed",
    "file", "found", "judged", "measured", "named", "no", "not", "of", "opened", "options", "published", "recorded",
    "refused", "request", "requested", "result", "source", "state", "stored", "submitted", "text", "time", "under",
}  # fmt: skip
"""Words that mean in a class name what they mean in any English text about programs."""


def test_no_class_name_is_defined_twice_without_a_reason() -> None:
    names = Counter(
        name for path in ROOT.rglob("*.py") for name in re.findall(r"^ *class (\w+)", path.read_text(), re.MULTILINE)
    )
    assert {name for name, count in names.items() if count > 1} == set(TWICE)


def test_a_word_of_several_class_names_is_in_the_glossary() -> None:
    classes = {
        name for path in ROOT.rglob("*.py") for name in re.findall(r"^class _?(\w+)", path.read_text(), re.MULTILINE)
    }
    counted = Counter(word.lower() for name in classes for word in set(re.findall(r"[A-Z][a-z0-9]+", name)))
    used = {word for word, count in counted.items() if count >= OFTEN}
    page = (ROOT.parent / "docs" / "glossary.md").read_text()
    said = {word for row in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE) for word in re.split(r"\W|_", row)}
    unknown = {word for word in used if not {word, f"{word}s", word.removesuffix("s")} & said}
    assert unknown - PLAIN == set(), "add them to docs/glossary.md"
