"""The newest measurement that counts, however the history came about."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.projections.histories import Run, asked, grown_by, invalidate, opened, promoted
from tests.projections.values import task

ACTS = st.tuples(st.sampled_from(["promote", "invalidate", "fail", "revoke"]), st.integers(0, 9))


def expected(history):
    """Folded the slow way: by going through the events."""
    withdrawn = {one.event.benchmark_seq for one in history.events if one.event.TYPE == "BenchmarkInvalidated"}
    tasks = {one.event.task_id: one.event.task for one in history.events if one.event.TYPE == "TaskCreated"}
    newest: dict[tuple, tuple] = {}
    for one in history.events:
        if one.event.TYPE not in ("BenchmarkRecorded", "BenchmarkFailed") or one.seq in withdrawn:
            continue
        if getattr(one.event, "reason", None) and one.event.reason.code != "TOO_SLOW":
            continue
        wanted = tasks[one.event.task_id]
        for timing in one.event.workloads:
            for speedup in (timing.confirmation or timing).speedups:
                shape = json.dumps(timing.shape, sort_keys=True, separators=(",", ":"))
                key = (
                    one.event.candidate,
                    one.event.task_id,
                    wanted.op,
                    wanted.target.gpu,
                    wanted.dtype,
                    shape,
                    speedup.baseline,
                )
                count = newest.get(key, (0, 0, 0.0))[0]
                newest[key] = (count + 1, one.seq, speedup.interval.ratio)
    return newest


@settings(max_examples=25, deadline=None)
@given(acts=st.lists(ACTS, max_size=7))
def test_it_is_what_going_through_the_events_gives(acts):
    history = opened()
    for act, choice in acts:
        grown_by(history, act, choice)
    rows = asked(
        history,
        "SELECT candidate, task_id, op, gpu, dtype, shape, baseline, measurements, seq, speedup FROM latest_speedups",
    )
    assert {row[:7]: row[7:] for row in rows} == expected(history)


def test_only_what_was_measured_and_too_slow_counts_of_what_was_refused():
    history = opened()
    Run(history, task(), "a").start().submit().verify().fail("TOO_SLOW")
    Run(history, task(), "b").start().submit().verify().fail("BELOW_FLOOR")
    Run(history, task(), "c").start().submit().verify().fail("NOISE_TOO_HIGH")
    assert asked(history, "SELECT verdict, speedup FROM latest_speedups") == [("rejected", 0.9)]


def test_a_withdrawn_measurement_gives_way_to_the_one_before_and_the_last_leaves_nothing():
    history = opened()
    promoted(history, name="a", ratio=1.5)
    first = history.events[-3].seq
    again = Run(history, task(), "a").start().submit().verify().benchmark(ratio=3.0)
    query = "SELECT speedup, measurements FROM latest_speedups"
    assert asked(history, query) == [(3.0, 2)]
    invalidate(history, again.benchmark_seq)
    assert asked(history, query) == [(1.5, 1)]
    invalidate(history, first)
    assert asked(history, query) == []


def test_a_runs_row_has_its_prompt_its_skills_and_what_its_timing_took():
    history = opened()
    promoted(history)
    assert asked(history, "SELECT skills, template, verified_seq IS NOT NULL, simulated, gpu_s FROM runs") == [
        ("[]", None, 1, 0, None)
    ]


def test_a_confirmed_row_has_the_confirmations_figures_and_says_so():
    history = opened()
    promoted(history, name="a", ratio=1.5, confirmed=1.4)
    promoted(history, name="b", ratio=1.3)
    query = "SELECT speedup, candidate_median_ns, baseline_median_ns, floor_fraction, source FROM {} ORDER BY seq"
    expected = [
        (1.4, 1030.0, 1030.0 * 1.4, 500.0 / 1030.0, "confirmation"),
        (1.3, 1000.0, 1300.0, 0.5, "first measurement"),
    ]
    for table in ("benchmarks", "latest_speedups"):
        assert asked(history, query.format(table)) == expected
    assert asked(history, "SELECT speedup FROM kernels ORDER BY promoted_seq") == [(1.4,), (1.3,)]
    assert asked(history, "SELECT newest_ns FROM recent_times ORDER BY kernel_id") == [(1030.0,), (1000.0,)]


def test_a_baseline_that_was_not_confirmed_keeps_its_first_measurement():
    history = opened()
    run = Run(history, task(), "a").start().submit().verify().benchmark(ratio=1.5, confirmed=1.4)
    event = history.events.pop().event
    (timing,) = run.workloads
    vendor = timing.speedups[0].model_copy(update={"baseline": "vendor"})
    both = timing.model_copy(update={"speedups": (*timing.speedups, vendor)})
    history.add(event.model_copy(update={"workloads": (both,)}))
    assert asked(history, "SELECT baseline, speedup, candidate_median_ns, source FROM benchmarks ORDER BY line") == [
        ("eager", 1.4, 1030.0, "confirmation"),
        ("vendor", 1.5, 1000.0, "first measurement"),
    ]
