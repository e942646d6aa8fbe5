"""Which operands fit into the last-level cache, by the number of sets that fit together into half of it."""

from pathlib import Path

import pytest

from forge.lab.timing import residency
from forge.lab.timing.graph_replay import MOST_RESIDENT_WINDOWS, RESIDENT_CALLS, windows_of
from forge.lab.timing.residency import Residence, processor_cache_bytes


@pytest.mark.parametrize(
    ("operand_bytes", "sets", "applies"), [(2**20, 25, True), (25 * 2**20, 1, True), (25 * 2**20 + 1, 0, False)]
)
def test_the_regime_applies_where_one_call_fits_into_half_of_the_cache(operand_bytes, sets, applies):
    found = Residence(50 * 2**20, operand_bytes)
    assert found.sets == sets
    assert (found.why_not is None) is applies
    assert applies or f"a call's operands take {operand_bytes} bytes" in found.why_not


def test_the_sets_of_a_window_never_take_more_than_half():
    for operand_bytes in range(1, 10_000, 37):
        found = Residence(8192, operand_bytes)
        assert found.sets * operand_bytes <= 4096
        assert (found.sets + 1) * operand_bytes > 4096


def test_a_chain_needs_several_sets_at_once():
    assert Residence(6000, 1000, fewest_sets=3).why_not is None
    assert Residence(5999, 1000, fewest_sets=3).why_not.startswith("the operands of 3 calls take 3000 bytes")


def test_an_unknown_cache_or_a_clock_that_copies_is_said():
    assert "isn't known" in Residence(None, 1000).why_not
    assert Residence(2**30, 1000, excluded="it copies").why_not == "it copies"


def test_a_small_window_is_repeated_and_a_large_one_is_not():
    assert [windows_of(sets) for sets in (1, 8, 64, 512)] == [MOST_RESIDENT_WINDOWS, 8, 1, 1]
    assert all(sets * windows_of(sets) >= min(RESIDENT_CALLS, sets * MOST_RESIDENT_WINDOWS) for sets in range(1, 600))


def test_the_last_level_counts_and_a_system_without_caches_has_none(tmp_path: Path, monkeypatch):
    for index, (level, size) in enumerate([(1, "48K"), (1, "32K"), (2, "2048K"), (3, "36M")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    (tmp_path / "index9").mkdir()
    monkeypatch.setattr(residency, "CACHES", tmp_path)
    assert processor_cache_bytes() == 36 * 2**20
    monkeypatch.setattr(residency, "CACHES", tmp_path / "none")
    assert processor_cache_bytes() is None
