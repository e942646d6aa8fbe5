"""What a second measurement, or a superseded protocol, does to a kernel: on offer or not, replicated or not."""

import dataclasses

import orjson
import pytest

from forge.domain.protocol import SUPERSEDED
from forge.errors import LedgerCorrupt
from forge.events import BenchmarkRecorded, Event, Recorded
from forge.ledger.audit import samples as audited
from forge.projections.history_version import PROJECTOR_VERSION
from forge.projections.standing import Standing, Standings
from tests.projections.histories import History, asked, benchmarked, head_of, opened, promoted, rebuild
from tests.projections.replications import ANOTHER_HOST, replicated
from tests.projections.values import digest, environment, task, workload

STATES = "SELECT status, evidence, status_reason FROM kernels"
LATER = 5
"""An hour that is two hours after the first measurement."""


def documents(history: History) -> dict[str, bytes]:
    return rebuild(history.events, head_of(history.events))


def offered(history: History) -> str | None:
    found = Standings(history.events).newest_active(task().family)
    return found.kernel_id if found else None


def entry(history: History) -> dict:
    found = orjson.loads(documents(history)["verified_kernels.json"])["kernels"]
    return next(iter(found))


def test_a_kernel_is_provisional_until_a_second_measurement_holds():
    history = opened()
    kernel_id = promoted(history)
    assert asked(history, STATES) == [("active", "provisional", None)]
    assert "replication" not in entry(history)
    seq = replicated(history, kernel_id)
    assert asked(history, STATES) == [("active", "replicated", None)]
    assert entry(history)["replication"]["seq"] == seq
    assert offered(history) == kernel_id


def test_a_second_measurement_by_a_superseded_protocol_makes_no_kernel_replicated_and_still_contradicts():
    for outcome, status in (("held", "active"), ("contradicted", "not_replicated")):
        history = opened()
        kernel_id = promoted(history)
        earlier = workload(task().shape, median_ns=1000.0, ratio=1.5).model_copy(
            update={"protocol": "graph_replay.v3"}
        )
        replicated(history, kernel_id, outcome=outcome, workloads=(earlier,))
        assert asked(history, "SELECT status, evidence FROM kernels") == [(status, "provisional")]
    history = opened()
    kernel_id = promoted(history)
    replicated(history, kernel_id, workloads=(earlier,))
    seq = replicated(history, kernel_id, hour=LATER)
    assert asked(history, "SELECT status, evidence FROM kernels") == [("active", "replicated")]
    assert entry(history)["replication"]["seq"] == seq


def test_only_benchmarks_down_to_the_newest_active_version_are_read():
    history = opened()
    for name in ("a", "b", "c"):
        promoted(history, name=name)
    places = {
        one.event.kernel_id: one.event.benchmark_seq for one in history.events if one.event.TYPE == "KernelPromoted"
    }
    asked_for: list[int] = []

    def measured(seq: int) -> Recorded[Event]:
        asked_for.append(seq)
        return history.events[seq - 1]

    without = [one for one in history.events if one.event.TYPE != "BenchmarkRecorded"]
    found = Standings(without).newest_active(task().family, measured=measured)
    assert found is not None
    assert (found.kernel_id, asked_for) == (max(places), [places[max(places)]])


def test_a_contradiction_takes_the_kernel_off_offer_and_keeps_both_measurements():
    history = opened()
    kernel_id = promoted(history)
    seq = replicated(history, kernel_id, outcome="contradicted")
    found = asked(history, STATES)
    assert found == [("not_replicated", "provisional", f"event {seq} measured it again: 1.2x, first 1.5x")]
    assert offered(history) is None
    shown = entry(history)
    assert (shown["benchmark"]["speedup"], shown["replication"]["outcome"]) == (1.5, "contradicted")


def test_a_contradiction_counts_after_a_replication_that_held_and_stays():
    history = opened()
    kernel_id = promoted(history)
    replicated(history, kernel_id)
    replicated(history, kernel_id, outcome="contradicted")
    replicated(history, kernel_id)
    assert [row[0] for row in asked(history, STATES)] == ["not_replicated"]
    assert offered(history) is None


def test_a_replication_without_a_verdict_changes_nothing():
    history = opened()
    kernel_id = promoted(history)
    before = entry(history)
    replicated(history, kernel_id, outcome="inconclusive", workloads=(), comparisons=())
    assert entry(history) == before
    assert offered(history) == kernel_id


def test_two_hours_later_the_same_machine_may_replicate():
    history = opened()
    kernel_id = promoted(history)
    replicated(history, kernel_id, on=environment(), hour=LATER)
    assert asked(history, STATES) == [("active", "replicated", None)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"on": environment()}, "minutes after the first on the same machine"),
        ({"on": environment("h100")}, "GPU is 'h100' here"),
        ({"on": ANOTHER_HOST.model_copy(update={"torch": "2.10.0"})}, "torch is '2.10.0' here"),
        ({"benchmark_seq": 1}, "measurement 1"),
        ({"candidate": digest("another")}, "which the kernel doesn't stand on"),
        ({"reason": {"code": "TOO_SLOW", "message": "1.0x"}}, "outcome 'held' with reason"),
        ({"comparisons": ()}, "holds without figures"),
        ({"policy_sha256": digest("looser")}, "isn't that of the promotion"),
        ({"env_sha256": digest("nowhere")}, "a machine that isn't in the ledger"),
    ],
)
def test_a_replication_that_is_none_is_a_broken_ledger(changes, why):
    history = opened()
    kernel_id = promoted(history)
    replicated(history, kernel_id, **changes)
    with pytest.raises(LedgerCorrupt, match=why):
        documents(history)


def test_one_process_cannot_replicate_itself_on_any_machine():
    history = measured(process_sha256=digest("a process"))
    with pytest.raises(LedgerCorrupt, match="the same process"):
        documents(with_replication(history, process=digest("a process")))
    documents(with_replication(measured(process_sha256=digest("a process"))))


def test_a_replication_of_a_kernel_that_was_never_promoted_is_a_broken_ledger():
    history = opened()
    kernel_id = promoted(history)
    replicated(history, kernel_id)
    event = history.events[-1].event.model_copy(update={"kernel_id": kernel_id + "0"})
    history.add(event)
    with pytest.raises(LedgerCorrupt, match="expected one that was promoted"):
        documents(history)


def test_a_kernel_measured_by_a_superseded_protocol_is_not_on_offer():
    for protocol in SUPERSEDED:
        history = measured(protocol=protocol)
        ((status, evidence, why),) = asked(history, STATES)
        assert (status, evidence) == ("evidence_stale", "provisional")
        assert protocol in why
        assert why.endswith("measure it anew")
        assert offered(history) is None


def test_a_second_measurement_by_a_current_protocol_keeps_a_kernel_of_a_superseded_one_on_offer():
    history = with_replication(measured(protocol="graph_replay.v3"))
    assert asked(history, STATES) == [("active", "replicated", None)]
    assert offered(history) is not None
    history = with_replication(
        measured(protocol="graph_replay.v3"), outcome="inconclusive", workloads=(), comparisons=()
    )
    assert [row[:2] for row in asked(history, STATES)] == [("evidence_stale", "provisional")]


def test_a_second_measurement_of_one_shape_makes_no_kernel_of_several_current():
    history = with_replication(measured(protocol="graph_replay.v3"))
    first, second = (
        next(one for one in history.events if kind == one.event.TYPE)
        for kind in ("BenchmarkRecorded", "ReplicationRecorded")
    )
    standing = Standing().after(second)
    assert standing.measured_by(first.event).status == "active"
    assert standing.measured_by(first.event.model_copy(update={"further_seqs": (9,)})).status == "evidence_stale"


def test_the_audit_of_published_files_has_the_same_superseded_protocols():
    assert {name for name in SUPERSEDED if not name.endswith("unnamed")} == set(audited.SUPERSEDED)


@pytest.mark.parametrize("protocol", ["graph_replay.v4", "host_slope.v4"])
def test_a_kernel_measured_by_a_protocol_that_counts_stays_on_offer(protocol):
    history = measured(protocol=protocol)
    assert asked(history, STATES) == [("active", "provisional", None)]
    assert offered(history) is not None


def test_another_set_of_superseded_protocols_needs_another_projector_version():
    """A published registry is rebuilt only if this version changes."""
    assert (PROJECTOR_VERSION, sorted(SUPERSEDED)) == (
        9,
        [
            "graph_replay.unnamed",
            "graph_replay.v1",
            "graph_replay.v2",
            "graph_replay.v3",
            "host_slope.v1",
            "host_slope.v2",
            "host_slope.v3",
        ],
    )


def measured(*, process_sha256: str | None = None, **changes: object) -> History:
    """A ledger with one kernel, whose benchmark differs by what is given."""
    history = opened()
    run = benchmarked(history)
    place = run.benchmark_seq - 1
    recorded: Recorded[Event] = history.events[place]
    event = recorded.event
    assert isinstance(event, BenchmarkRecorded)
    workloads = tuple(one.model_copy(update=changes) for one in event.workloads)
    timed = event.model_copy(update={"workloads": workloads, "process_sha256": process_sha256})
    history.events[place] = dataclasses.replace(recorded, event=timed)
    run.workloads = workloads
    run.promote()
    return history


def with_replication(history: History, **changes: object) -> History:
    replicated(history, f"{task().family}_v1", **changes)
    return history
