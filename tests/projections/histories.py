"""Small ledgers, event by event, as the store would hand them out: gapless, and the same on every run."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from forge.domain.candidate import Candidate
from forge.domain.digest import canonical
from forge.domain.evidence import Coverage, WorkloadErrors
from forge.domain.evidence import WorkloadTiming as Workload
from forge.domain.task import Task
from forge.domain.tensors import Shape
from forge.domain.verdict import Reason, ReasonCode
from forge.events import Event, Recorded
from forge.events.benchmark import BenchmarkFailed, BenchmarkInvalidated, BenchmarkRecorded
from forge.events.candidate import CandidateSubmitted, ClaimAssessed, ClaimRecorded
from forge.events.create import TaskCreated
from forge.events.ledger import LedgerOpened
from forge.events.plan import PlanAccepted
from forge.events.promote import KernelDeprecated, KernelPromoted, KernelRevoked
from forge.events.run import RunSealed, RunStarted
from forge.events.verify import CandidateVerified
from forge.ledger.replay import Line
from forge.projections import documents
from forge.projections.catch_up import Cursor, built
from forge.projections.sqlite_file import connect, content_digest
from tests.projections.values import (
    EDGES,
    GATES,
    WALL,
    candidate,
    captured,
    digest,
    environment,
    task,
    workload,
)

ACTOR = "ci:test"
LEDGER_ID = "0190aaaa-0000-7000-8000-000000000001"


@dataclass(frozen=True)
class Head:
    seq: int
    event_hash: str


@dataclass
class History:
    """A ledger in the making; `head` and `events` are what the store would give."""

    events: list[Recorded[Event]] = field(default_factory=list)
    runs: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)

    @property
    def head(self) -> Head:
        return head_of(self.events)

    def add(self, event: Event, *, hour: int = 3) -> int:
        seq, stream = len(self.events) + 1, event.stream()
        self.streams[stream] = self.streams.get(stream, 0) + 1
        previous = self.events[-1].event_hash if self.events else digest("genesis")
        recorded = Recorded(
            seq=seq,
            event_id=f"event-{seq}",
            stream=stream,
            stream_version=self.streams[stream],
            recorded_at=f"2026-01-02T{hour:02}:04:{seq // 60 % 60:02}.{seq:06}Z",
            actor=ACTOR,
            correlation_id="run",
            causation_id=None,
            event_hash=digest((previous, event.TYPE, event.model_dump_json())),
            event=event,
        )
        self.events.append(recorded)
        return seq


def head_of(events: list[Recorded[Event]]) -> Head:
    return Head(len(events), events[-1].event_hash if events else digest("genesis"))


@dataclass
class Past:
    """Events as the folds get them from a ledger."""

    events: list[Recorded[Event]]
    head: Head
    ledger_id: str = LEDGER_ID

    def hash_at(self, seq: int) -> str | None:
        return self.events[seq - 1].event_hash if 1 <= seq <= self.head.seq else None

    def event_at(self, seq: int) -> Recorded[Event] | None:
        return self.events[seq - 1] if 1 <= seq <= self.head.seq else None

    def lines(self, after_seq: int) -> Iterator[Line]:
        for one in self.events[after_seq:]:
            payload = orjson.loads(canonical(one.event))
            yield Line(one.seq, one.event.TYPE, one.recorded_at, one.actor, bytes.fromhex(one.event_hash), payload)


def past(events: list[Recorded[Event]], ledger_id: str = LEDGER_ID) -> Past:
    return Past(list(events), head_of(events), ledger_id)


def rebuild(events: list[Recorded[Event]], head: Head, ledger_id: str = LEDGER_ID) -> dict[str, bytes]:
    """Every published document and the content digest of the tables, folded from the first event."""
    source = Past(list(events), head, ledger_id)
    with (
        TemporaryDirectory() as folder,
        built(Path(folder), source) as (path, cursor),
        closing(connect(path)) as connection,
    ):
        return rendered(connection, cursor)


def rendered(connection: sqlite3.Connection, cursor: Cursor) -> dict[str, bytes]:
    tables = content_digest(connection).encode()
    return {"tables": tables, **documents.render(connection, cursor)}


def asked(history: "History", query: str) -> list[tuple]:
    """What the tables of this history answer."""
    with (
        TemporaryDirectory() as folder,
        built(Path(folder), past(history.events)) as (path, _),
        closing(connect(path)) as connection,
    ):
        return connection.execute(query).fetchall()


def opened() -> History:
    history = History()
    history.add(LedgerOpened(ledger_id=LEDGER_ID, origin="test", forge_version="0.1.0"))
    return history


@dataclass
class Run:
    """One candidate's way through the phases, appended to `history`."""

    history: History
    task: Task
    name: str
    run_id: str = ""
    verified_seq: int = 0
    benchmark_seq: int = 0
    verified: tuple[Shape, ...] = ()
    workloads: tuple[Workload, ...] = ()

    @property
    def candidate(self) -> Candidate:
        return candidate(self.name, language=self.task.language)

    @property
    def ids(self) -> dict[str, str]:
        return {"run_id": self.run_id, "task_id": self.task.task_id, "candidate": self.candidate.sha256}

    @property
    def skills(self) -> tuple[str, ...]:
        """Those of the run's plan."""
        plans = (one.event for one in self.history.events if isinstance(one.event, PlanAccepted))
        return tuple(skill.id for plan in plans if plan.run_id == self.run_id for skill in plan.skills)

    def start(self) -> "Run":
        self.history.runs += 1
        self.run_id = f"20260102T030405_{self.task.op}_{self.task.target.gpu}_{self.history.runs:06x}"
        self.history.add(TaskCreated(task_id=self.task.task_id, task=self.task))
        self.history.add(
            RunStarted(run_id=self.run_id, task_id=self.task.task_id, command="run", policy_sha256=digest("policy"))
        )
        return self

    def submit(self) -> "Run":
        self.history.add(CandidateSubmitted(**self.ids, files=self.candidate, author="an author"))
        return self

    def claim(self, value: float, verdict: str | None = None) -> "Run":
        ids = {"run_id": self.run_id, "candidate": self.candidate.sha256, "claim_id": "c1"}
        self.history.add(
            ClaimRecorded(
                **ids,
                metric="speedup",
                value=value,
                unit="x",
                workload="b16_h4096",
                baseline="eager",
                claimant="author",
            )
        )
        if verdict:
            self.history.add(
                ClaimAssessed.model_validate(
                    {**ids, "verdict": verdict, "measured_value": 1.5, "measured_by_seq": None}
                )
            )
        return self

    def verify(self, shapes: tuple[Shape, ...] | None = None, **changes: object) -> "Run":
        self.history.add(captured(self.task.target.gpu))
        self.verified = (self.task.shape, *(EDGES if shapes is None else shapes))
        self.verified_seq = self.history.add(
            CandidateVerified(
                **self.ids,
                attempt=1,
                artifact_sha256=None,
                workloads=(
                    WorkloadErrors(shape=self.task.shape, inputs="normal", max_relative_error=1e-3, bound_used=0.4),
                ),
                shapes_verified=self.verified,
                gates=GATES,
                seeds_sha256=digest("seeds"),
                isolation=WALL,
                env_sha256=environment(self.task.target.gpu).env_sha256,
                simulated=False,
                report_sha256=digest("verification report"),
                policy_sha256=digest("policy"),
            ).model_copy(update=changes)
        )
        return self

    def benchmark(
        self,
        *,
        median_ns: float = 1000.0,
        ratio: float = 1.5,
        also: tuple[Shape, ...] = (),
        confirmed: float | None = None,
    ) -> "Run":
        self.workloads = tuple(
            workload(shape, median_ns=median_ns, ratio=ratio, confirmed=confirmed)
            for shape in (self.task.shape, *also)
        )
        self.benchmark_seq = self.history.add(
            BenchmarkRecorded(
                **self.ids,
                attempt=1,
                workloads=self.workloads,
                baseline_used="eager",
                baseline_seqs=(),
                isolation=WALL,
                env_sha256=environment(self.task.target.gpu).env_sha256,
                verified_seq=self.verified_seq,
                report_sha256=digest("benchmark report"),
                policy_sha256=digest("policy"),
            )
        )
        return self

    def fail(self, code: ReasonCode = "TOO_SLOW", *, measured: bool = True) -> "Run":
        timings = (workload(self.task.shape, median_ns=1000.0, ratio=0.9),) if measured else ()
        self.history.add(
            BenchmarkFailed(
                **self.ids,
                attempt=1,
                reason=Reason(code=code, message="as it was"),
                workloads=timings,
                baseline_used="eager",
                env_sha256=environment(self.task.target.gpu).env_sha256,
                verified_seq=self.verified_seq,
                report_sha256=None,
                policy_sha256=digest("policy"),
            )
        )
        return self

    def promotion(self, **changes: object) -> KernelPromoted:
        """The promotion that the evidence allows, or one that differs by `changes`."""
        found = environment(self.task.target.gpu)
        first = self.workloads[0].confirmation or self.workloads[0]
        version = self.history.versions.get(self.task.family, 0) + 1
        return KernelPromoted.model_validate(
            {
                **self.ids,
                "kernel_id": f"{self.task.family}_v{version}",
                "family": self.task.family,
                "version": version,
                "task": self.task,
                "files": self.candidate.files,
                "entry_point": "rmsnorm",
                "artifact_sha256": None,
                "author": "an author",
                "skills": self.skills,
                "speedup": first.speedups[0].interval,
                "baseline": "eager",
                "candidate_median_ns": first.candidate.median_ns,
                "baseline_median_ns": first.speedups[0].baseline_median_ns,
                "policy_sha256": digest("policy"),
                "gates": GATES,
                "verified_seq": self.verified_seq,
                "benchmark_seq": self.benchmark_seq,
                "env_sha256": found.env_sha256,
                "perf_key": found.perf_key,
                "abi_key": found.abi_key,
                "coverage": Coverage(
                    verified=self.verified, measured=tuple(timing.shape for timing in self.workloads)
                ),
                **changes,
            }
        )

    def promote(self, **changes: object) -> str:
        event = self.promotion(**changes)
        self.history.add(event)
        self.history.versions[self.task.family] = event.version
        self.history.add(RunSealed(run_id=self.run_id, outcome="promoted", manifest_sha256=digest("manifest")))
        return event.kernel_id


def benchmarked(
    history: History,
    *,
    name: str = "a",
    wanted: Task | None = None,
    shapes: tuple[Shape, ...] | None = None,
    median_ns: float = 1000.0,
    ratio: float = 1.5,
    also: tuple[Shape, ...] = (),
    confirmed: float | None = None,
) -> Run:
    run = Run(history, wanted or task(), name).start().submit().verify(shapes)
    return run.benchmark(median_ns=median_ns, ratio=ratio, also=also, confirmed=confirmed)


def promoted(history: History, **choices: object) -> str:
    """A whole run from task to seal; gives the kernel id."""
    # mypy doesn't read the tests: the choices are those of `benchmarked`
    return benchmarked(history, **choices).promote()  # type: ignore[arg-type]


def deprecate(history: History, kernel_id: str, *, by: str | None = None) -> None:
    family = kernel_id.rpartition("_v")[0]
    history.add(KernelDeprecated(kernel_id=kernel_id, family=family, reason="a better one", superseded_by=by))


def revoke(history: History, kernel_id: str, *evidence: str) -> None:
    family, severity = kernel_id.rpartition("_v")[0], "wrong_result"
    named = {"kernel_id": kernel_id, "family": family, "reason": "off by one", "severity": severity}
    history.add(KernelRevoked.model_validate({**named, "evidence": evidence}))


def invalidate(history: History, benchmark_seq: int) -> None:
    benchmark = history.events[benchmark_seq - 1].event
    assert isinstance(benchmark, BenchmarkRecorded)
    history.add(
        BenchmarkInvalidated(
            candidate=benchmark.candidate, benchmark_seq=benchmark_seq, why="clock was wrong", by=ACTOR
        )
    )


TASKS = (task(), task(gpu="h100"), task(op="softmax"), task(language="cpp"), task(dtype="fp16"))


def grown_by(history: History, act: str, choice: int) -> None:
    """Do one thing that a workspace may do; with nothing promoted yet, promote."""
    wanted, name = TASKS[choice % len(TASKS)], f"{choice}-{len(history.events)}"
    kernels = [recorded.event for recorded in history.events if recorded.event.TYPE == "KernelPromoted"]
    if act == "fail":
        Run(history, wanted, name).start().submit().claim(2.0, "refuted").verify().fail()
    elif act == "abandon":
        Run(history, wanted, name).start().submit()
    elif act == "promote" or not kernels:
        again = 1.15 + choice / 100 if choice % 3 == 0 else None
        figures = {"median_ns": 500.0 + choice, "ratio": 1.2 + choice / 100, "confirmed": again}
        promoted(history, wanted=wanted, name=name, **figures)
    else:
        kernel = kernels[choice % len(kernels)]
        match act:
            case "deprecate":
                deprecate(history, kernel.kernel_id)
            case "revoke":
                revoke(history, kernel.kernel_id)
            case "invalidate":
                invalidate(history, kernel.benchmark_seq)
