"""A class name has one meaning in Forge."""

import re
from collections import Counter
from pathlib import Path

import forge

ROOT = Path(forge.__file__).parent
TWICE = {
    "Contract": "a guest can't import the domain's, and reads the same file",
    "Operand": "a guest can't import the domain's; its own is a place in the arena",
    "Policy": "a reader's policy of a lookup, beside the policy of judging; both are public names",
    "Result": "what a lookup answers is a public name; the other is one result of a reference file",
}
"""Names that stand for two classes, with the reason."""


def test_no_class_name_is_defined_twice_without_a_reason() -> None:
    names = Counter(
        name for path in ROOT.rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    )
    assert {name for name, count in names.items() if count > 1} == set(TWICE)
