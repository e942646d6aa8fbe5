"""What audits say of the shipped ledger's speeds, against the raw events: read with sqlite3 and json alone."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forge.app.claims import evidence_of
from forge.claims import check_page
from tests.cli.asking import ask, copied

ROOT = Path(__file__).parents[1]
Event = dict[str, Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since looking at a workspace may bring its projections up to date."""
    folder = tmp_path_factory.mktemp("numbers") / "home"
    copied(ROOT / "kernel_registry", folder / "kernel_registry")
    copied(ROOT / "forge_runs", folder / "forge_runs")
    (folder / "kernel_registry.db").write_bytes((ROOT / "kernel_registry.db").read_bytes())
    return folder


@pytest.fixture(scope="module")
def events() -> list[tuple[int, str, Event]]:
    path = ROOT / "kernel_registry.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT seq, type, payload FROM event ORDER BY seq").fetchall()
    return [(seq, kind, json.loads(payload)) for seq, kind, payload in rows]


def answered(home: Path, *words: str) -> Event:
    answer = ask("audit", *words, "--home", home, "--json")
    assert answer.status == 0, answer.err
    return answer.document


def counted(events: list[tuple[int, str, Event]]) -> dict[int, tuple[Event, Event]]:
    """The benchmarks with a verdict that stand: place -> (event, speedup over the baseline that counted)."""
    withdrawn = {event["benchmark_seq"] for _, kind, event in events if kind == "BenchmarkInvalidated"}
    return {seq: one for seq, one in judged(events).items() if seq not in withdrawn}


def judged(events: list[tuple[int, str, Event]]) -> dict[int, tuple[Event, Event]]:
    """The same for all benchmarks with a verdict; the speedup is the confirmed one."""
    found = {}
    for seq, kind, event in events:
        if kind not in ("BenchmarkRecorded", "BenchmarkFailed") or not event["workloads"]:
            continue
        if kind == "BenchmarkFailed" and event["reason"]["code"] != "TOO_SLOW":
            continue
        (timing,) = event["workloads"]
        timed = timing.get("confirmation") or timing
        found[seq] = event, next(one for one in timed["speedups"] if one["baseline"] == event["baseline_used"])
    return found


def test_fast_p_gives_each_task_its_own_result(home: Path, events: list[tuple[int, str, Event]]) -> None:
    offered = {event["task_id"] for _, kind, event in events if kind in ("CandidateSubmitted", "CandidateRejected")}
    newest: dict[tuple[str, str], Event] = {}
    for event, speedup in counted(events).values():
        newest[event["task_id"], event["candidate"]] = speedup["interval"]
    ratios: dict[str, list[Event]] = {}
    for (task_id, _), interval in newest.items():
        ratios.setdefault(task_id, []).append(interval)
    document = answered(home, "fast-p", "1", "1.5", "2")
    assert document["attempted"] == len(offered)
    assert document["timed"] == len(ratios)
    for row in document["rows"]:
        faster = sum(max(one["ratio"] for one in own) > row["p"] for own in ratios.values())
        surely = sum(max(one["low"] for one in own) > row["p"] for own in ratios.values())
        assert (row["tasks_faster"], row["fast_p"]) == (faster, faster / len(offered))
        assert row["fast_p_by_lower_end"] == surely / len(offered)


def test_effectiveness_counts_each_run_whose_candidate_was_timed_and_was_faster(
    home: Path, events: list[tuple[int, str, Event]]
) -> None:
    """A task may have several runs, also of one candidate, so these are more than the tasks of `fast-p`."""
    newest = {event["run_id"]: speedup["interval"] for event, speedup in counted(events).values()}
    authors = answered(home, "effectiveness")["rows"]
    assert sum(row["measured"] for row in authors) == len(newest)
    assert sum(row["improved"] or 0 for row in authors) == sum(one["low"] > 1 for one in newest.values())


def test_every_audit_gives_one_number_for_one_benchmark(home: Path, events: list[tuple[int, str, Event]]) -> None:
    truth = {seq: speedup["interval"] for seq, (_, speedup) in judged(events).items()}
    query = "SELECT seq, speedup, low, high, source FROM {} WHERE baseline_used AND speedup IS NOT NULL"
    for table in ("latest_speedups", "benchmarks"):
        rows = answered(home, "sql", query.format(table))["rows"]
        assert rows
        for row in rows:
            if row["seq"] in truth:
                assert {name: row[name if name != "ratio" else "speedup"] for name in truth[row["seq"]]} == truth[
                    row["seq"]
                ]
    kernels = answered(home, "sql", "SELECT kernel_id, benchmark_seq, speedup, low, high FROM kernels")["rows"]
    assert len(kernels) == sum(kind == "KernelPromoted" for _, kind, _ in events)
    for row in kernels:
        assert (row["speedup"], row["low"]) == (
            truth[row["benchmark_seq"]]["ratio"],
            truth[row["benchmark_seq"]]["low"],
        )
        history = answered(home, "history", row["kernel_id"])["rows"]
        own = next(one for one in history if one["seq"] == row["benchmark_seq"])
        assert (own["speedup"], own["low"], own["high"]) == (row["speedup"], row["low"], row["high"])
        assert own["source"] == "confirmation"


def test_the_claims_check_accepts_what_the_audit_says(home: Path, events: list[tuple[int, str, Event]]) -> None:
    tasks = {event["task_id"]: event["task"] for _, kind, event in events if kind == "TaskCreated"}
    by_seq = {seq: event for seq, _, event in events}
    lines = []
    for op in sorted({task["op"] for task in tasks.values()}):
        for row in answered(home, "history", "--op", op, "--gpu", "h200")["rows"]:
            if row["reason_code"] in (None, "TOO_SLOW"):
                task = tasks[by_seq[row["seq"]]["task_id"]]
                shape = ", ".join(f"{axis}={size}" for axis, size in sorted(task["shape"].items()))
                lines.append(
                    f"{op} in {task['dtype']} at {shape} on an h200 ran {row['speedup']:.3f}x "
                    f"({row['low']:.3f} to {row['high']:.3f}x) over {row['baseline']}: event {row['seq']}."
                )
    assert lines
    report = check_page("audit.md", "\n\n".join(lines), evidence_of(home), lambda _: None)
    numbers = {"overstated", "not_measured", "wrong_interval", "no_interval", "wrong_baseline", "no_evidence"}
    wrong = [(one.sentence, fault.why) for one in report.flagged for fault in one.faults if fault.problem in numbers]
    assert wrong == []
    assert len(report.supported) + len(report.flagged) == len(lines)


def test_the_page_has_a_row_with_numbers_for_each_kernel_on_offer() -> None:
    entries = json.loads((ROOT / "kernel_registry" / "verified_kernels.json").read_text())["kernels"]
    page = (ROOT / "docs" / "reference" / "registry.md").read_text(encoding="utf-8").splitlines()
    offered = [entry["kernel_id"] for entry in entries if entry["status"] == "active"]
    assert offered
    for kernel_id in offered:
        rows = [line for line in page if line.startswith("|") and f"`{kernel_id}`" in line]
        assert len(rows) == 1, kernel_id
        assert " us | " in rows[0], kernel_id
