"""What a benchmark is answered with, from recorded evidence to a table."""

from typing import Any

import pytest

from forge.app.runs.benchmark_answer import timed
from forge.cli.benchmark_tables import show_workloads
from forge.domain.evidence import Confirmation, Interval, Replay, Speedup, Timing
from forge.domain.verdict import Reason
from forge.events import BenchmarkFailed, BenchmarkRecorded
from tests.pipeline.making import DIGEST, case, timing

TOO_SLOW = Reason(code="TOO_SLOW", message="1.04x over compile")


def speedup(kind: str, median_ns: float, ratio: float = 1.3) -> Speedup:
    interval = Interval(ratio=ratio, low=ratio - 0.01, high=ratio + 0.01)
    return Speedup.model_validate(
        {"baseline": kind, "baseline_median_ns": median_ns, "interval": interval, "pairs_lost": 0}
    )


def replayed(floor_ns: float, *baselines: Speedup, **changes: Any) -> dict[str, Any]:
    """A workload as a GPU's is recorded; the candidate takes 1000 ns."""
    measured = Timing(n=120, median_ns=1000.0, p10_ns=990.0, p90_ns=1010.0, mad_ns=5.0, method="launch_plan")
    replay = Replay(
        plan_sha256=DIGEST,
        sets=240,
        set_bytes=2**19,
        host_ratio=(0.998, 1.003),
        states=(),
        blocks=20,
        dropped=1,
        gpu_s=0.91,
    )
    again = Confirmation(
        candidate=measured,
        speedups=baselines,
        control=Interval(ratio=1.0, low=0.999, high=1.001),
        process_pairs=5,
    )
    facts = {"candidate": measured, "speedups": baselines, "replay": replay, "confirmation": again, "harness_ns": 0.0}
    return {"workloads": (timing(floor_ns=floor_ns, **{**facts, **changes}),)}


def recorded(**changes: Any) -> BenchmarkRecorded:
    event = case(benchmark=changes).benchmark.event
    assert isinstance(event, BenchmarkRecorded)
    return event


def failed(reason: Reason, **changes: Any) -> BenchmarkFailed:
    facts = recorded(**changes).model_dump(mode="python", exclude={"baseline_seqs", "isolation"})
    return BenchmarkFailed.model_validate({**facts, "reason": reason})


def workload(event: BenchmarkRecorded | BenchmarkFailed) -> dict[str, Any]:
    (one,) = timed(event.model_dump(mode="json"))["workloads"]  # type: ignore[misc]  # a JSON document
    return dict(one)


def test_method_confirmation_and_what_a_replay_saw_are_told() -> None:
    event = recorded(**replayed(500.0, speedup("eager", 2000.0), speedup("vendor", 1250.0)))
    one = workload(event)
    assert one["method"] == "launch_plan"
    assert one["baselines"]["vendor"]["floor_fraction"] == 0.4
    assert one["confirmation"]["baselines"]["eager"]["ci95"] == [1.29, 1.31]
    assert one["confirmation"]["process_pairs"] == 5
    assert (one["replay"]["sets"], one["replay"]["dropped"], one["replay"]["gpu_s"]) == (240, 1, 0.91)
    assert one["replay"]["host_ratio"] == [0.998, 1.003]


def test_times_on_a_processor_have_no_replay_and_no_notes() -> None:
    unconfirmed = {"workloads": (timing(confirmation=None),)}
    for event in (recorded(**unconfirmed), failed(TOO_SLOW, **unconfirmed)):
        one = workload(event)
        assert (one["method"], one["replay"], one["confirmation"], one["notes"]) == ("host_slope", None, None, [])


@pytest.mark.parametrize(
    ("floor_ns", "reason", "code"),
    [
        (850.0, TOO_SLOW, "baseline_stands"),
        (849.0, TOO_SLOW, None),
        (850.0, Reason(code="NOISE_TOO_HIGH", message="noise"), None),
        (850.0, None, None),
        (99.0, None, "bad_baseline"),
        (99.0, TOO_SLOW, "bad_baseline"),
        (100.0, TOO_SLOW, None),
    ],
)
def test_the_fastest_baseline_is_held_against_its_floor(
    floor_ns: float, reason: Reason | None, code: str | None
) -> None:
    facts = replayed(floor_ns, speedup("eager", 9000.0), speedup("compile", 1000.0))
    event = failed(reason, **facts) if reason else recorded(**facts)
    notes = workload(event)["notes"]
    assert [note["code"] for note in notes] == ([code] if code else [])
    assert all("compile" in note["message"] for note in notes)


def test_the_table_shows_baselines_their_share_of_the_floor_and_what_was_confirmed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = replayed(900.0, speedup("eager", 2000.0), speedup("vendor", 1000.0), speedup("promoted", 1010.0))
    show_workloads(timed(failed(TOO_SLOW, **facts).model_dump(mode="json")))
    shown = capsys.readouterr().out
    for said in ("launch_plan", "vendor", "promoted", "90%", "45%", "confirmation: vendor", "1.290 to 1.310x"):
        assert said in shown
    assert "baseline stands" in shown
    assert "vendor already reaches 90% of its floor: no kernel could be more than 1.11x as fast" in shown
    assert "20, of which 1 were disturbed" in shown
    assert "the path itself" not in shown


def test_the_table_of_a_processors_times_has_the_path_and_nothing_of_a_device(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_workloads(timed(recorded().model_dump(mode="json")))
    shown = capsys.readouterr().out
    assert "the path itself" in shown
    assert "host_slope" in shown
    assert "operand sets" not in shown
