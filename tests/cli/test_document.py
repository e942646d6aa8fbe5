"""Nested documents are shown as text, never as Python writes them."""

import contextlib
import io
from pathlib import Path

import pytest

from forge.cli.document import emit_document
from tests.cli.asking import ask, copied

ROOT = Path(__file__).parents[2]


def shown(document: dict[str, object]) -> list[list[str]]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        emit_document("It", document)
    return [line.split() for line in out.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (3, "x 3"),
        (0.1 + 0.2, "x 0.3"),
        (True, "x yes"),
        ("text", "x text"),
        ([], "x none"),
        ({}, "x none"),
        (["a", 1], "x a, 1"),
        ({"hidden_size": 4, "batch": 1}, "x batch=1,hidden_size=4"),
        ([{"batch": 1}, {"batch": 2}], "x batch=1; batch=2"),
        ({"ratio": 1.5, "low": 1.25, "high": 2.0}, "x 1.500x, 95 % interval 1.250 to 2.000x"),
        ({"gpu": "h200", "parts": ["a", "b"]}, "x.gpu h200"),
        ([{"deep": [{"deeper": [{"one": "a"}]}]}], "one"),
    ],
)
def test_a_fact_stands_on_its_line(value: object, line: str) -> None:
    assert line.split() in shown({"x": value})


def test_like_things_are_a_table_under_their_name_and_what_is_absent_is_left_out() -> None:
    found = shown({"none": None, "gates": [{"name": "a", "shape": {"n": 1}}, {"name": "b", "more": None}]})
    assert found[0] == ["It"]
    assert found[-4:] == [["name", "shape", "more"], found[-3], ["a", "n=1"], ["b"]]
    assert ["gates"] in found
    assert not any("none" in line for line in found)


@pytest.mark.slow
@pytest.mark.parametrize("noun", ["kernel", "task"])
def test_no_table_shows_pythons_own_writing(noun: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kernel_registry.db").write_bytes((ROOT / "kernel_registry.db").read_bytes())
    copied(ROOT / "forge_runs", home / "forge_runs")
    name = ask(noun, "list", "--home", home, "--json").document[0][f"{noun}_id"]
    answer = ask(noun, "show", name, "--home", home)
    assert answer.status == 0
    assert name in answer.out
    recorded = "[{'batch': "  # in one line of a promotion that was recorded so
    lines = [line for line in answer.out.splitlines() if not ("measured shape" in line and recorded in line)]
    assert len(lines) >= len(answer.out.splitlines()) - 1
    assert not any(sign in line for line in lines for sign in ("{'", "['", "': ", "}"))
