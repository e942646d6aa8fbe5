"""Anything an owner may do, in any order, with crashes and repeated commands: what the ledger promises holds."""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from forge.app.ledger.bundles import export
from forge.app.ledger.recovery import recover
from forge.app.user.home import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER
from forge.app.workspace import Workspace
from forge.errors import IdempotencyConflict
from forge.events import Recorded
from forge.ledger.audit.history import audit
from forge.lookup import Registry
from tests.cli.asking import QUICK_POLICY
from tests.ledger.suites.acts import ACTS, BUNDLES, SHAPE, SLOT, act, silent
from tests.ledger.suites.ledgers import duplicated, fill
from tests.ledger.suites.sizes import rounds

ROOT = Path(__file__).parents[3]
SURVIVABLE = tuple(name for name in ACTS if name != "create")
"""Acts that a child forked from a process without tensors can do at once."""
PICKS = st.integers(0, 9)


@cache
def prepared() -> Path:
    """A workspace with one task, a kernel and an open run, and bundles of another; made once, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="forge-machine-"))
    home = folder / "home"
    Workspace.create(home, origin="kernels/own").ledger.close()
    (home / "policy.toml").write_text(QUICK_POLICY)
    act(home, "create", 0)
    for _ in range(4):
        act(home, "advance", 0)
    act(home, "another_run", 0)
    (home / BUNDLES).mkdir()
    with Workspace.create(folder / "other", origin="kernels/other") as other:
        for size in (5, 30):
            fill(other.ledger, size)
            export(other, home / BUNDLES / f"{size:03}.bundle", since=0, progress=silent)
    return home


@cache
def crasher() -> "subprocess.Popen[str]":
    """The program that performs acts and kills them."""
    command = [sys.executable, "-m", "tests.ledger.suites.crashing"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Owner(RuleBasedStateMachine):
    """One workspace; the model is what stood in its ledger before."""

    seen: ClassVar[Counter[str]] = Counter()
    """What happened in all examples together."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="forge-machine-"))
        self.home = Path(shutil.copytree(prepared(), self.folder / "home", symlinks=True))
        self.hashes: list[bytes] = []
        self.kernels: list[str] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(pick=PICKS, steps=st.integers(1, 6))
    def work(self, pick: int, steps: int) -> None:
        """A run moves on; four steps lead to a promotion, and there is always a run to work on."""
        for _ in range(steps):
            if not act(self.home, "advance", pick):
                act(self.home, "another_run", pick)
            self.seen["advance"] += 1

    @rule(name=st.sampled_from(sorted(ACTS)), pick=PICKS)
    def do(self, name: str, pick: int) -> None:
        self.seen[name] += act(self.home, name, pick)

    @rule(pick=PICKS, data=st.data())
    def crash_at_work(self, pick: int, data: st.DataObject) -> None:
        self.crash("advance", pick, data)

    @rule(name=st.sampled_from(SURVIVABLE), pick=PICKS, data=st.data())
    def crash(self, name: str, pick: int, data: st.DataObject) -> None:
        """Killed at any durable operation; the next command finds what it left."""
        program = crasher()
        assert program.stdin
        assert program.stdout
        asked = {"home": str(self.home), "act": name, "pick": pick, "fatal": data.draw(st.integers(1, 50))}
        program.stdin.write(json.dumps(asked) + "\n")
        program.stdin.flush()
        self.seen["crash"] += json.loads(program.stdout.readline())
        with Workspace.open(self.home) as workspace:
            recover(workspace)

    @rule(pick=PICKS)
    def deliver_again(self, pick: int) -> None:
        """A command that was recorded comes once more; and another one under its key."""
        with Workspace.open(self.home) as workspace:
            head = workspace.ledger.head
            keyed = [(row.seq, row.idempotency_key) for row in workspace.ledger.rows() if row.idempotency_key]
            first_seq, name = keyed[pick * len(keyed) // 10]
            key = name.rpartition("#")[0]
            command = [seq for seq, other in keyed if other.rpartition("#")[0] == key]
            first: Recorded = next(workspace.ledger.read(after_seq=command[0] - 1, limit=1))
            events = [one.event for one in workspace.ledger.read(after_seq=command[0] - 1, limit=len(command))]
            same = {"actor": first.actor, "correlation_id": first.correlation_id, "idempotency_key": key}
            again = workspace.ledger.append(events, causation_id=first.causation_id, **same)
            assert (again.replayed, again.first_seq, again.last_seq) == (True, command[0], command[-1])
            with pytest.raises(IdempotencyConflict):
                workspace.ledger.append([duplicated(first_seq)], **{**same, "actor": "cli:ada"})
            assert workspace.ledger.head == head
        self.seen["deliver_again"] += 1

    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        report = audit(self.home / LEDGER_FILE, runs=self.home / RUNS_FOLDER)
        assert report.ok, report.problems

    @invariant()
    def history_only_grows(self) -> None:
        """Gapless, in every stream too, and what stood there stands there."""
        with closing(sqlite3.connect(self.home / LEDGER_FILE)) as connection:
            rows = connection.execute(
                "SELECT seq, event_id, stream, stream_version, event_hash FROM event ORDER BY seq"
            ).fetchall()
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        assert len({row[1] for row in rows}) == len(rows), "an event's id was used twice"
        streams = Counter[str]()
        for _, _, stream, version, _ in rows:
            streams[stream] += 1
            assert version == streams[stream], stream
        hashes = [row[4] for row in rows]
        assert hashes[: len(self.hashes)] == self.hashes
        self.hashes = hashes

    @invariant()
    def no_kernel_id_is_ever_used_again(self) -> None:
        payloads = self._payloads("KernelPromoted")
        named = [str(one["kernel_id"]) for one in payloads]
        assert named[: len(self.kernels)] == self.kernels
        assert len(set(named)) == len(named)
        versions = Counter[str]()
        for one in payloads:
            versions[str(one["family"])] += 1
            assert one["version"] == versions[str(one["family"])]
        self.kernels = named

    @invariant()
    def what_is_published_is_what_a_rebuild_gives(self) -> None:
        with Workspace.open(self.home) as workspace:
            compared = workspace.publication.build_anew()
        assert {one["state"] for one in compared} == {"identical"}, compared

    @invariant()
    def lookup_answers_with_what_stands_and_only_that(self) -> None:
        withdrawn = {
            one["kernel_id"] for kind in ("KernelRevoked", "KernelDeprecated") for one in self._payloads(kind)
        }
        benchmarks = {one["benchmark_seq"] for one in self._payloads("BenchmarkInvalidated")}
        standing = {
            one["kernel_id"]
            for one in self._payloads("KernelPromoted")
            if one["kernel_id"] not in withdrawn and one["benchmark_seq"] not in benchmarks
        }
        found = Registry.open(self.home / REGISTRY_FOLDER).lookup(**SLOT, shape=SHAPE)
        if found.kernel is None:
            assert not standing
            assert found.match == "none"
        else:
            assert found.kernel.kernel_id in standing
            assert found.kernel.read_source()
            self.seen["answered"] += 1

    def _payloads(self, kind: str) -> list[dict[str, object]]:
        with closing(sqlite3.connect(self.home / LEDGER_FILE)) as connection:
            query = "SELECT payload FROM event WHERE type = ? ORDER BY seq"
            return [json.loads(payload) for (payload,) in connection.execute(query, (kind,))]


def test_whatever_an_owner_does_the_ledger_keeps_its_promises() -> None:
    Owner.seen.clear()
    try:
        run_state_machine_as_test(
            Owner,
            settings=settings(
                max_examples=rounds(4, long=60),
                stateful_step_count=rounds(10, long=40),
                deadline=None,
                derandomize=rounds(1, long=0) == 1,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        program = crasher()
        program.communicate()
        crasher.cache_clear()
        shutil.rmtree(prepared().parent, ignore_errors=True)
        prepared.cache_clear()
    print(dict(Owner.seen))
    assert Owner.seen["crash"]
    assert Owner.seen["advance"]
    assert Owner.seen["deliver_again"]
    assert Owner.seen["answered"]
