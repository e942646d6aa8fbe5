"""Several writers, killed writers, and a disk that is full: real processes."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from forge.ledger.audit.history import audit

from .making import fill, open_ledger

WRITER = """
import itertools, json, os, resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
from forge.domain.digest import sha256
from forge.errors import StorageFailed
from forge.events.candidate import CandidateDuplicated
from forge.ledger.blobs import BlobStore
from forge.ledger.ids import uuid7
from forge.ledger.store import Ledger

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def event(number, candidate):
    digest = sha256(candidate.encode())
    return CandidateDuplicated(run_id="r", task_id="t", candidate=digest, earlier_seq=number)

ledger = Ledger.open(
    path, now=lambda: datetime.now(UTC), new_id=lambda: uuid7(time.time_ns() // 10**6, os.urandom(10))
)

def append(number, size=1):
    events = [event(number, name if place % 2 else "shared") for place in range(size)]
    return ledger.append(events, actor=f"ci:{name}", correlation_id=name, idempotency_key=f"{name}:{number}")
"""
APPEND_ALL = """
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([append(number, size=1 + number % 3).last_seq for number in range(count)]))
"""
APPEND_FOR_EVER = """
for number in itertools.count():
    print(number, append(number, size=2).last_seq, flush=True)
"""
FILL_THE_DISK = """
def allow(size_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))

log = path.with_name(path.name + "-wal")
append(0)
before = ledger.head
allow(log.stat().st_size + 120_000)
refused = 0
for number in range(1, 100):
    try:
        append(number, size=8)
    except StorageFailed as error:
        refused, says = number, error.message
        break
head = ledger.head
stored = sum(1 for _ in ledger.read())
blobs = BlobStore(path.parent / "cas")
try:
    blobs.put(b"x" * 40_000_000)
    blob_refused = False
except StorageFailed:
    blob_refused = True
allow(resource.RLIM_INFINITY)
again = append(refused, size=8)
print(json.dumps(dict(
    refused=refused, says=says, kept=head.seq == stored == 2 + 8 * (refused - 1),
    blob_refused=blob_refused, left=[str(p) for p in blobs.root.rglob("*") if p.is_file()],
    replayed=again.replayed, first=again.first_seq, head=head.seq,
)))
ledger.close()
"""


def start(code: str, path: Path, name: str, count: int = 0) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER + code, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_four_processes_append_at_once_without_a_gap_or_an_error(path: Path) -> None:
    count = 60
    writers = [start(APPEND_ALL, path, f"w{place}", count) for place in range(4)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    answers = [json.loads(writer.communicate(timeout=120)[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len({seq for answer in answers for seq in answer}) == 4 * count
    report = audit(path)
    assert report.ok, report.problems
    assert report.events == 1 + 4 * sum(1 + number % 3 for number in range(count))


def test_a_writer_killed_in_the_middle_loses_nothing_it_acknowledged(path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for attempt in range(3):
        writer = start(APPEND_FOR_EVER, path, f"w{attempt}")
        assert writer.stdout is not None
        for line in writer.stdout:
            number, seq = line.split()
            acknowledged[f"w{attempt}:{number}#1"] = int(seq)
            if int(number) >= 20 + 7 * attempt:
                writer.send_signal(signal.SIGKILL)
                break
        writer.communicate(timeout=120)
        report = audit(path)
        assert report.ok, report.problems
        with open_ledger(path) as ledger:
            stored = {row.idempotency_key: row.seq for row in ledger.rows()}
            assert stored.items() >= acknowledged.items()
            assert ledger.head.seq % 2 == 1, "half a batch was stored"


def test_a_full_disk_refuses_and_leaves_ledger_and_blobs_as_they_were(path: Path) -> None:
    writer = start(FILL_THE_DISK, path, "full")
    out, _ = writer.communicate(timeout=120)
    assert writer.returncode == 0
    answer = json.loads(out)
    assert answer["refused"] > 1
    assert "nothing was written" in answer["says"]
    assert answer["kept"]
    assert answer["blob_refused"]
    assert answer["left"] == []
    assert not answer["replayed"]
    assert answer["first"] == answer["head"] + 1
    report = audit(path)
    assert report.ok, report.problems
    with open_ledger(path) as ledger:
        fill(ledger, 1)
