"""Rebuilding from zero and catching up give the same bytes, whatever the history and wherever it was cut."""

import json
import os
import subprocess
import sys
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.errors import LedgerCorrupt
from forge.projections import PROJECTIONS
from forge.projections.catch_up import catch_up, rebuild, render
from forge.projections.folds import EMPTY
from tests.projections.histories import (
    LEDGER_ID,
    Head,
    History,
    Run,
    deprecate,
    head_of,
    invalidate,
    opened,
    promoted,
    revoke,
)
from tests.projections.values import task

TASKS = (task(), task(gpu="h100"), task(op="softmax"), task(language="cpp"), task(dtype="fp16"))
Act = tuple[str, int]
ACTS = st.tuples(
    st.sampled_from(["promote", "promote", "deprecate", "revoke", "invalidate", "fail", "abandon"]),
    st.integers(0, 99),
)


def grow(history: History, act: str, choice: int) -> None:
    """Do one thing that a workspace may do; with nothing promoted yet, promote."""
    wanted, name = TASKS[choice % len(TASKS)], f"{choice}-{len(history.events)}"
    kernels = [recorded.event for recorded in history.events if recorded.event.TYPE == "KernelPromoted"]
    if act == "fail":
        Run(history, wanted, name).start().submit().claim(2.0, "refuted").verify().fail()
    elif act == "abandon":
        Run(history, wanted, name).start().submit()
    elif act == "promote" or not kernels:
        promoted(history, wanted=wanted, name=name, median_ns=500.0 + choice, ratio=1.2 + choice / 100)
    else:
        kernel = kernels[choice % len(kernels)]
        match act:
            case "deprecate":
                deprecate(history, kernel.kernel_id)
            case "revoke":
                revoke(history, kernel.kernel_id)
            case "invalidate":
                invalidate(history, kernel.benchmark_seq)


def grown(acts: list[Act]) -> History:
    history = opened()
    for act, choice in acts:
        grow(history, act, choice)
    return history


def entries(history: History, length: int | None = None) -> dict[str, dict]:
    events = history.events[:length]
    files = rebuild(events, head_of(events), LEDGER_ID)
    return {entry["kernel_id"]: entry for entry in json.loads(files["verified_kernels.json"])["kernels"]}


@settings(max_examples=40, deadline=None)
@given(acts=st.lists(ACTS, max_size=8), data=st.data())
def test_rebuild_equals_incremental_at_any_cut_as_bytes(acts, data):
    history = grown(acts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history.events)), max_size=4)))
    folds, done = EMPTY, 0
    for cut in [*cuts, len(history.events)]:
        folds = catch_up(folds, history.events[done:cut])
        done = cut
        if cut and cut in cuts[:1]:
            early = history.events[:cut]
            assert render(folds, head_of(early), LEDGER_ID) == rebuild(early, head_of(early), LEDGER_ID)
    assert render(folds, history.head, LEDGER_ID) == rebuild(history.events, history.head, LEDGER_ID)


@settings(max_examples=30, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=6), data=st.data())
def test_the_ids_of_a_prefix_never_change_as_the_log_grows(acts, data):
    history = grown(acts)
    early = entries(history, data.draw(st.integers(1, len(history.events))))
    late = entries(history)
    assert early.keys() <= late.keys()
    assert all(early[kernel_id]["candidate"] == late[kernel_id]["candidate"] for kernel_id in early)
    assert all(early[kernel_id]["files"] == late[kernel_id]["files"] for kernel_id in early)


@settings(max_examples=30, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=5), others=st.integers(1, 3))
def test_unrelated_families_leave_other_kernels_entries_equal(acts, others):
    history = grown(acts)
    before = entries(history)
    for number in range(others):
        promoted(history, wanted=task(op="layernorm", gpu="rtx4070"), name=f"unrelated {number}")
    after = entries(history)
    assert {kernel_id: after[kernel_id] for kernel_id in before} == before
    assert len(after) == len(before) + others


def test_a_fold_leaves_the_state_it_started_from_as_it_was():
    history = grown([("promote", 1)])
    folds = catch_up(EMPTY, history.events)
    head = history.head
    before = render(folds, head, LEDGER_ID)
    revoke(history, next(iter(folds.registry.kernels)))
    grow(history, "fail", 3)
    catch_up(folds, history.events[head.seq :])
    assert render(folds, head, LEDGER_ID) == before


def test_a_broken_event_leaves_the_state_before_it_usable():
    history = grown([("promote", 1)])
    folds = catch_up(EMPTY, history.events)
    head = history.head
    deprecate(history, "never_promoted_v1")
    with pytest.raises(LedgerCorrupt):
        catch_up(folds, history.events[head.seq :])
    assert render(folds, head, LEDGER_ID) == rebuild(history.events[: head.seq], head, LEDGER_ID)


@pytest.mark.parametrize("skip", [0, 1])
def test_a_missing_or_repeated_event_is_refused(skip):
    history = grown([("promote", 1)])
    folds = catch_up(EMPTY, history.events[:3])
    again = history.events[2:] if skip == 0 else history.events[4:]
    with pytest.raises(LedgerCorrupt, match="expected 4"):
        catch_up(folds, again)


def test_nothing_is_rendered_unless_the_events_end_at_the_head():
    history = grown([("promote", 1)])
    folds = catch_up(EMPTY, history.events[:-1])
    with pytest.raises(LedgerCorrupt, match="head"):
        render(folds, history.head, LEDGER_ID)
    head = history.head
    with pytest.raises(LedgerCorrupt, match="head"):
        rebuild(history.events, Head(head.seq, "0" * 64), LEDGER_ID)


def test_what_was_appended_after_the_head_was_taken_is_left_for_next_time():
    history = grown([("promote", 1)])
    head = history.head
    early = rebuild(history.events, head, LEDGER_ID)
    grow(history, "revoke", 0)
    assert rebuild(history.events, head, LEDGER_ID) == early
    folds = catch_up(EMPTY, history.events, head=head)
    later = render(catch_up(folds, history.events[folds.seq :]), history.head, LEDGER_ID)
    assert later == rebuild(history.events, history.head, LEDGER_ID)


def test_every_projection_of_the_index_renders_files_of_its_own():
    history = grown([("promote", 1), ("fail", 2)])
    files = rebuild(history.events, history.head, LEDGER_ID)
    assert len(files) == len(PROJECTIONS) + 1  # the snapshot comes with its pointer
    assert list(files)[-1] == "current.json"


def test_kernels_are_listed_by_name_whatever_the_order_of_their_promotion():
    history = grown([("promote", 2), ("promote", 3), ("promote", 0)])
    files = rebuild(history.events, history.head, LEDGER_ID)
    snapshot = next(content for name, content in files.items() if name.startswith("lookup-"))
    for content in (snapshot, files["verified_kernels.json"]):
        listed = [entry["kernel_id"] for entry in json.loads(content)["kernels"]]
        assert len(listed) == 3
        assert listed == sorted(listed)


def test_a_snapshot_keeps_its_name_while_the_registry_stays_the_same():
    history = grown([("promote", 1)])
    before = rebuild(history.events, history.head, LEDGER_ID)
    grow(history, "abandon", 2)
    after = rebuild(history.events, history.head, LEDGER_ID)
    assert {name for name in before if name.startswith("lookup-")} <= after.keys()
    assert before["current.json"] != after["current.json"]


SOME_ACTS = [("promote", 3), ("promote", 1), ("fail", 2), ("deprecate", 0), ("promote", 6), ("revoke", 2)]
SCRIPT = """
from hashlib import sha256
from forge.projections.catch_up import rebuild
from tests.projections.histories import LEDGER_ID
from tests.projections.test_catch_up import SOME_ACTS, grown
history = grown(SOME_ACTS)
for name, content in sorted(rebuild(history.events, history.head, LEDGER_ID).items()):
    print(name, sha256(content).hexdigest())
"""


def test_hash_seed_and_time_zone_change_no_byte():
    settings_tried = [("0", "UTC"), ("1", "Asia/Kathmandu"), ("random", "America/St_Johns")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            stdout=subprocess.PIPE,
        )
        for seed, zone in settings_tried
    ]
    printed = {process.communicate()[0] for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(printed) == 1
    history = grown(SOME_ACTS)
    files = rebuild(history.events, history.head, LEDGER_ID)
    here = [f"{name} {sha256(content).hexdigest()}" for name, content in sorted(files.items())]
    assert printed.pop().decode().split("\n")[:-1] == here
