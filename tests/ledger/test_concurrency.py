"""Many processes append at once: no error, no gap, no one starves; and what a caller may do again."""

import fcntl
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forge.errors import ConcurrencyConflict, IdempotencyConflict
from forge.ledger.audit.history import audit
from forge.ledger.lock import lock_path

from .making import duplicated, fill, open_ledger, stream_of

ROOT = Path(__file__).parents[2]
WRITERS, APPENDS = 8, 200
STARVED = 0.6
"""Share of the whole time that one append may wait.

Measured beside four busy loops: 0.2 to 0.4 with the queue, 0.7 to 0.9 with SQLite's own waiting alone.
"""


def test_eight_processes_append_at_once_without_an_error_or_a_gap(path: Path, record_property) -> None:
    program = [sys.executable, "-m", "tests.ledger.writers", str(path), str(WRITERS), str(APPENDS)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT, timeout=600)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    for name, value in found.items():
        record_property(name, value)
    assert found["errors"] == []
    assert found["worst_ms"] < STARVED * found["whole_ms"], found
    report = audit(path)
    assert report.ok, report.problems
    assert report.events == 1 + WRITERS * APPENDS
    with open_ledger(path) as ledger:
        keys = [row.idempotency_key for row in ledger.rows(after_seq=1)]
        assert ledger.stream_version(stream_of("shared")) == WRITERS * APPENDS // 2
    assert len(set(keys)) == WRITERS * APPENDS
    for place in range(WRITERS):
        mine = [key for key in keys if key and key.startswith(f"w{place}:")]
        assert mine == [f"w{place}:{number}#0" for number in range(APPENDS)], "each writer's own order is kept"


def append(
    path: Path, key: str | None, *numbers: int, expected: dict[str, int] | None = None
) -> tuple[int, int, bool]:
    with open_ledger(path) as ledger:
        done = ledger.append(
            [duplicated(number) for number in numbers],
            actor="cli:ada@lab",
            correlation_id="c",
            idempotency_key=key,
            expected=expected,
        )
    return done.first_seq, done.last_seq, done.replayed


def test_the_same_command_again_stands_where_it_stood(path: Path) -> None:
    """What a caller does that was killed before it heard back."""
    assert append(path, "k", 1, 2) == (2, 3, False)
    assert append(path, "other", 3) == (4, 4, False)
    assert append(path, "k", 1, 2) == (2, 3, True)
    assert append(path, "k", 1, 2, expected={stream_of("a"): 0}) == (2, 3, True), "it was decided on then, not now"
    assert audit(path).events == 4


@pytest.mark.parametrize("numbers", [(1,), (2, 1), (1, 2, 3), (9,)])
def test_the_same_key_with_other_content_is_refused(numbers: tuple[int, ...], path: Path) -> None:
    append(path, "k", 1, 2)
    with pytest.raises(IdempotencyConflict):
        append(path, "k", *numbers)
    assert audit(path).events == 3


def test_without_a_key_the_same_events_are_other_events(path: Path) -> None:
    assert append(path, None, 1) == (2, 2, False)
    assert append(path, None, 1) == (3, 3, False)


def test_who_decided_on_an_older_state_is_told_to_decide_anew(path: Path) -> None:
    with open_ledger(path) as ledger:
        seen = ledger.stream_version(stream_of("a"))
    append(path, "first", 1, expected={stream_of("a"): seen})
    with pytest.raises(ConcurrencyConflict) as moved_on:
        append(path, "second", 2, expected={stream_of("a"): seen})
    assert (moved_on.value.expected, moved_on.value.actual) == (seen, seen + 1)
    append(path, "second", 2, expected={stream_of("a"): moved_on.value.actual})


HOLD = """
import fcntl, sys, time
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_EX)
print(1, flush=True)
time.sleep(600)
"""


def test_a_lock_held_by_a_dead_process_is_free(path: Path) -> None:
    with open_ledger(path) as ledger:
        holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock_path(path))], stdout=subprocess.PIPE)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        with open(lock_path(path)) as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with open(lock_path(path)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it is free at once
        fill(ledger, 1)
        holder.stdout.close()
    assert audit(path).ok
