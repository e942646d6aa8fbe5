"""What is said of a kernel of several shapes has its points: tables, leaderboard, claims and replications."""

from pathlib import Path

import pytest

from tests.app.test_several_shapes import promoted_workspace
from tests.cli.asking import ask, copied

__all__ = ["promoted_workspace"]


def rows(home: Path, *arguments: str) -> list[dict]:
    found = ask("audit", *arguments, "--json", "--home", home).document
    return found["rows"] if isinstance(found, dict) else found


def test_the_leaderboard_has_a_row_for_each_point_with_its_own_figures(promoted_workspace: Path) -> None:
    found = {row["shape"]: row for row in rows(promoted_workspace, "leaderboard")}
    ratios = {shape: row["typical"] for shape, row in found.items()}
    assert ratios == pytest.approx(
        {"b16_h4096": 100 / 51, "b64_h4096": 100 / 40, "b8_h4096": 100 / 150, "b1_h4096": 100 / 45}
    )
    assert {shape: row["standing"] for shape, row in found.items()} == {
        "b16_h4096": 1,
        "b64_h4096": 1,
        "b8_h4096": 0,
        "b1_h4096": 1,
    }
    assert {shape: row["attempted"] for shape, row in found.items() if row["attempted"]} == {"b16_h4096": 1}


def test_each_point_is_a_row_of_the_benchmark_with_its_own_verdict(promoted_workspace: Path) -> None:
    query = "SELECT shape, verdict, reason_code, speedup FROM benchmarks ORDER BY line"
    found = ask("audit", "sql", query, "--json", "--home", promoted_workspace).document["rows"]
    told = [(row["verdict"], row["reason_code"], row["speedup"] is not None) for row in found]
    assert told == [
        ("accepted", None, True),
        ("accepted", None, True),
        ("rejected", "TOO_SLOW", True),
        ("accepted", None, True),
        ("inconclusive", "CLOCKS_UNSTABLE", False),
    ]
    assert ['"batch":64' in str(row["shape"]) for row in found] == [False, True, False, False, False]


def test_a_withdrawn_benchmark_takes_all_of_its_points_along(promoted_workspace: Path, tmp_path: Path) -> None:
    home = copied(promoted_workspace, tmp_path / "home")
    (seq,) = (row["benchmark_seq"] for row in ask("kernel", "list", "--json", "--home", home).document)
    assert ask("benchmark", "invalidate", seq, "--reason", "a wrong clock", "--home", home).status == 0
    assert rows(home, "leaderboard") == []


def test_the_sentences_of_a_kernel_name_each_point_and_pass_the_check(
    promoted_workspace: Path, tmp_path: Path
) -> None:
    (kernel,) = ask("kernel", "list", "--json", "--home", promoted_workspace).document
    told = ask("kernel", "claims", kernel["kernel_id"], "--json", "--home", promoted_workspace).document
    speeds = [one["text"] for one in told["sentences"] if one["about"] == "speed"]
    named = [f"batch {batch}, hidden_size 4096" for batch in (16, 64, 1)]
    assert [name in text for name, text in zip(named, speeds, strict=True)] == [True, True, True]
    (shapes,) = [one["text"] for one in told["sentences"] if one["about"] == "shape"]
    assert "; ".join(named) in shapes
    page = tmp_path / "page.md"
    page.write_text("\n\n".join(speeds) + "\n")
    assert ask("claims", "check", page, "--home", promoted_workspace).status == 0
    swapped = speeds[1].replace("batch 64", "batch 16")
    for wrong in (swapped, speeds[0].replace("batch 16", "batch 8")):
        page.write_text(wrong + "\n")
        assert ask("claims", "check", page, "--home", promoted_workspace).status == 1, wrong


def test_a_point_without_its_shape_in_the_sentence_is_flagged(promoted_workspace: Path, tmp_path: Path) -> None:
    (kernel,) = ask("kernel", "list", "--json", "--home", promoted_workspace).document
    told = ask("kernel", "claims", kernel["kernel_id"], "--json", "--home", promoted_workspace).document
    best = next(one for one in told["sentences"] if "batch 64" in one["text"] and one["about"] == "speed")
    page = tmp_path / "page.md"
    page.write_text(best["text"].replace(" at batch 64, hidden_size 4096", "") + "\n")
    assert ask("claims", "check", page, "--home", promoted_workspace).status == 1
