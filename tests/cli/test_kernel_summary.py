"""What `forge kernel show` says first of a shipped kernel: regimes, replication, and contenders left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from forge.cli.kernel_summary import show_summary

REGISTRY = Path(__file__).parents[2] / "kernel_registry" / "verified_kernels.json"


@pytest.fixture
def entry() -> dict[str, Any]:
    found: dict[str, Any] = next(
        one
        for one in json.loads(REGISTRY.read_text())["kernels"]
        if one.get("replication") and (one["benchmark"]["workloads"][0].get("residency") or {}).get("timing")
    )
    return found


def shown(entry: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    show_summary(entry)
    return " ".join(capsys.readouterr().out.split())


def test_both_regimes_and_the_second_occasion_are_said(
    entry: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    said = shown(entry, capsys)
    assert "with operands in the last-level cache" in said
    again = {one["regime"]: one["second"]["ratio"] for one in entry["replication"]["comparisons"]}
    assert f"{entry['replication']['outcome']} on another occasion: cold {again['cold']:.3f}x" in said
    assert f"resident {again['resident']:.3f}x" in said
    assert "no: no second measurement that counts has held" in shown({**entry, "replication": None}, capsys)


def test_the_share_of_the_floor_is_said_of_more_than_bytes(
    entry: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    share = entry["benchmark"]["workloads"][0]["floor_fraction"]
    assert f"reaches {share:.0%} of its floor, the least time for its bytes, its products" in shown(entry, capsys)


def test_what_was_not_there_to_be_measured_is_said_with_the_reason(
    entry: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    standings: list[tuple[str, dict[str, Any], str | None]] = [
        ("absent", {"cause": "not_installed", "detail": "no such package"}, "not_installed: no such package"),
        ("failed", {"reason": {"code": "NAN", "message": "y[0] is NaN"}}, "NAN: y[0] is NaN"),
        ("screened_out", {"least_ns": 41200.0}, "right, and slower than others: about 41.20 us"),
        ("in_full", {}, None),
    ]
    for outcome, standing, why in standings:
        one = {"contender": "a.library", "version": None, "standing": {"outcome": outcome, **standing}}
        said = shown({**entry, "benchmark": {**entry["benchmark"], "contenders": [one]}}, capsys)
        assert ("Contenders that were not measured beside it" in said) == (why is not None)
        assert why is None or f"a.library {outcome} {why}" in said
