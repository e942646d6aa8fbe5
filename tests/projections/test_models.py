"""Measurements of models are published as they were recorded; a ledger without one publishes no such file."""

import json
from pathlib import Path

from forge.events import parse_event
from forge.ledger.audit.published_models import PublishedModels
from forge.projections.files import put
from tests.cli.asking import ask
from tests.projections.histories import LEDGER_ID, History, opened, promoted, rebuild

GOLDEN = Path(__file__).parents[1] / "events" / "golden" / "ModelMeasured.v1.json"


def measured() -> tuple[History, int]:
    history = opened()
    promoted(history)
    return history, history.add(parse_event("ModelMeasured", 1, GOLDEN.read_bytes()))


def test_a_measurement_is_published_beside_the_kernels_and_not_among_them() -> None:
    history = opened()
    promoted(history)
    before = rebuild(history.events, history.head, LEDGER_ID)
    assert "models.json" not in before
    history, seq = measured()
    after = rebuild(history.events, history.head, LEDGER_ID)
    (entry,) = json.loads(after["models.json"])["measurements"]
    assert entry["seq"] == seq
    assert {name: entry[name] for name in json.loads(GOLDEN.read_bytes())} == json.loads(GOLDEN.read_bytes())
    assert json.loads(after["leaderboard.json"])["slots"] == json.loads(before["leaderboard.json"])["slots"]


def test_the_auditor_compares_each_published_measurement_with_its_event(tmp_path: Path) -> None:
    history, seq = measured()
    content = json.loads(rebuild(history.events, history.head, LEDGER_ID)["models.json"])

    def problems() -> list[str]:
        (tmp_path / "models.json").write_text(json.dumps(content))
        models = PublishedModels(tmp_path)
        models.take(seq, json.loads(GOLDEN.read_bytes()))
        return [one.what for one in models.problems()]

    assert problems() == []
    content["measurements"][0]["comparison"]["speedup"]["ratio"] = 1.5
    assert problems() == ["published models.json: comparison.speedup.ratio"]
    content["measurements"] = []
    assert problems() == ["published models.json"]
    content["ledger"]["seq"] = seq - 1
    assert problems() == []


def test_a_recommendation_shows_it_beside_the_kernels_and_changes_no_plan(tmp_path: Path) -> None:
    history, seq = measured()
    without = ask("recommend", "--model", "llama3.1-8b", "--gpu", "h200", "--home", tmp_path, "--json").document
    assert without["end_to_end"] == []
    put(tmp_path / "kernel_registry", rebuild(history.events, history.head, LEDGER_ID))
    asked = ("recommend", "--model", "llama3.1-8b", "--gpu", "h200", "--home", tmp_path)
    found = ask(*asked, "--json").document
    assert [one["seq"] for one in found["end_to_end"]] == [seq]
    figures = ("ttft_ms", "tpot_ms", "throughput_tok_s", "scores")
    assert [{name: plan[name] for name in figures} for plan in found["plans"]] == [
        {name: plan[name] for name in figures} for plan in without["plans"]
    ]
    shown = ask(*asked)
    assert "end to end" in shown.out
    assert (
        ask("recommend", "--model", "llama3.1-8b", "--gpu", "h100", "--home", tmp_path, "--json").document[
            "end_to_end"
        ]
        == []
    )
    (tmp_path / "kernel_registry" / "models.json").write_text("{")
    assert ask(*asked).status == 1
