"""What a brief says of this machine's processor is what the system says, and nothing is invented."""

from pathlib import Path

import pytest

from forge.platforms import host_facts


def test_it_says_processors_and_nothing_twice() -> None:
    found = dict(host_facts.host_facts())
    assert int(found["processors that a guest may use"]) >= 1
    assert all(found.values())


def test_caches_are_those_that_hold_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "30720K")]
    ):
        folder = tmp_path / f"index{place}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    monkeypatch.setattr(host_facts, "CACHES", tmp_path)
    assert dict(host_facts.host_facts())["caches"] == "L1 48KiB, L2 2048KiB, L3 30720KiB for all that share it"
    monkeypatch.setattr(host_facts, "CACHES", tmp_path / "missing")
    assert "caches" not in dict(host_facts.host_facts())
