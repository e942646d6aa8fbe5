"""Texts of the measured plots neither overlap nor leave the picture."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LETTER_SHARE = 0.62
"""Width of a letter as a share of the font's size: that of a digit in DejaVu Sans."""


@dataclass(frozen=True)
class Text:
    words: str
    left: float
    right: float
    bottom: float
    size: float

    def overlaps(self, other: "Text") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and abs(self.bottom - other.bottom) < 0.7 * max(self.size, other.size)
        )


def texts(path: Path) -> Iterator[Text]:
    root = ElementTree.parse(path).getroot()
    size = float(root.get("font-size", ""))
    for one in root.iter("{http://www.w3.org/2000/svg}text"):
        width, at = LETTER_SHARE * size * len(one.text or ""), float(one.get("x", ""))
        left = at - width * {None: 0.0, "start": 0.0, "middle": 0.5, "end": 1.0}[one.get("text-anchor")]
        yield Text(one.text or "", left, left + width, float(one.get("y", "")), size)


@pytest.mark.parametrize("name", ["measurement-gpu.svg", "performance.svg"])
def test_each_text_of_a_plot_can_be_read(name: str) -> None:
    found = list(texts(DOCS / name))
    width = float(ElementTree.parse(DOCS / name).getroot().get("viewBox", "").split()[2])
    assert [one.words for one in found if one.left < 0 or one.right > width] == []
    assert [(one.words, other.words) for one, other in combinations(found, 2) if one.overlaps(other)] == []


def test_the_first_plot_says_what_a_box_is_and_which_is_better() -> None:
    words = " ".join(one.words for one in texts(DOCS / "measurement-gpu.svg"))
    assert "box: 5 to 95 %" in words
    assert "narrower is better" in words
