"""Runs the gates in order on one candidate and stops at the first refusal.

The candidate's bytes go in, findings come out. Nothing here imports, loads or believes the candidate.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from forge.domain.candidate import Metadata
from forge.domain.evidence import Counterexample, GateResult, Isolation, WorkloadErrors
from forge.domain.operation import Operation
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.domain.verdict import Accepted, Reason, Rejected
from forge.lab.finding import Failed, Finding, Passed, result
from forge.lab.gates import GATES
from forge.lab.own_tests import examine_own_tests
from forge.lab.probe import Probe
from forge.lab.sources import cpp_source, examine_sources
from forge.languages import Language
from forge.sandbox.arena import Arena
from forge.sandbox.build import Built, build
from forge.sandbox.limits import Limits
from forge.sandbox.reply import ArtifactFile, Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Program, Stage

ARENA_BYTES = 768 * 2**20
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that judging a candidate needs, and nothing that identifies a run."""

    operation: Operation
    language: Language
    shape: Mapping[str, int]
    held_out: tuple[Mapping[str, int], ...]
    dtype: DType
    policy: Policy
    isolation: Isolation
    files: Mapping[str, bytes]
    metadata: Metadata
    entry_point: str
    interpreted: bool = False
    """Whether an interpreter stands in for the target: the result is simulated."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Where the candidate runs."""

    @property
    def threads(self) -> int:
        """Threads that a guest may compute with: one for each processor it may run on."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the language needs in the guest."""
        return {"TRITON_INTERPRET": "1"} if self.interpreted else {}


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What examining a candidate came to."""

    verdict: Accepted | Rejected
    stage: str
    """screen, build or verify: how far it got."""
    gates: tuple[GateResult, ...]
    workloads: tuple[WorkloadErrors, ...] = ()
    counterexample: Counterexample | None = None
    artifact: tuple[ArtifactFile, ...] = ()
    seeds: tuple[int, ...] = ()
    log: str = ""


@dataclass
class _Record:
    gates: list[GateResult] = field(default_factory=list)
    workloads: list[WorkloadErrors] = field(default_factory=list)
    artifact: tuple[ArtifactFile, ...] = ()
    seeds: tuple[int, ...] = ()

    def take(self, name: str, finding: Finding) -> bool:
        """Note a finding; whether to go on."""
        self.gates.append(result(name, finding))
        if isinstance(finding, Passed):
            self.workloads += finding.errors
        return isinstance(finding, Passed)

    def rejected(self, stage: str, failed: Failed) -> Examination:
        return Examination(
            verdict=Rejected(reason=failed.reason),
            stage=stage,
            gates=tuple(self.gates),
            workloads=tuple(self.workloads),
            counterexample=failed.counterexample,
            artifact=self.artifact,
            seeds=self.seeds,
            log=failed.log,
        )


def examine(job: Job, *, progress: Progress) -> Examination:
    """Judge one candidate; raise EnvironmentUnfit where the machine, not the candidate, fails."""
    record = _Record()
    kernel = job.files["kernel.py"].decode()
    progress("sources")
    screened = examine_sources(kernel, metadata=job.metadata, language=job.language.name, entry_point=job.entry_point)
    record.take("sources", screened)
    if isinstance(screened, Failed):
        return record.rejected("screen", screened)
    if job.language.builds:
        progress("build")
        built = build_artifact(job)
        finding = _build_finding(built)
        record.take("build", finding)
        if isinstance(finding, Failed):
            return record.rejected("build", finding)
        record.artifact = built.files if isinstance(built, Built) else ()
    return _verify(job, record, progress)


def build_artifact(job: Job) -> Built | Refused:
    """Run the builder on the candidate's sources."""
    metadata = job.metadata
    source = cpp_source(job.files["kernel.py"].decode(), metadata.cpp.source) if metadata.cpp else None
    limits = _limits(job.policy, job.policy.build_limit_s)
    stage = Stage(Program(language=job.language, files=job.files, warm=True), job.isolation)
    try:
        flags = metadata.cpp.flags if metadata.cpp else ()
        return build(stage, cpp_source=source, cpp_flags=flags, limits=limits, threads=job.threads)
    finally:
        stage.remove()


def _build_finding(built: Built | Refused) -> Finding:
    if isinstance(built, Refused):
        return Failed(
            reason=built.reason, observed=built.reason.message, threshold="one shared object", log=built.log
        )
    if not built.files:
        reason = Reason(code="COMPILE_ERROR", message="the build made no shared object")
        return Failed(reason=reason, observed="none", threshold="at least one shared object")
    names = ", ".join(f"{file.name} ({len(file.content)} bytes)" for file in built.files)
    return Passed(observed=names, threshold="at least one shared object")


def _limits(policy: Policy, wall_s: float) -> Limits:
    return Limits(wall_s=wall_s, cpu_s=int(wall_s * 16), memory_bytes=policy.memory_limit_bytes)


def staged_files(job: Job, artifact: tuple[ArtifactFile, ...]) -> dict[str, bytes]:
    """The candidate's files with what was built from them."""
    return {**job.files, **{file.name: file.content for file in artifact}}


def _verify(job: Job, record: _Record, progress: Progress) -> Examination:
    limits = _limits(job.policy, job.policy.verify_limit_s)
    program = Program(
        language=job.language,
        files=staged_files(job, record.artifact),
        # freed memory is filled with a pattern, so that reading it before writing shows
        environment={**job.environment, "MALLOC_PERTURB_": "165"},
        device=job.device,
        warm=True,
    )
    stage = Stage(program, job.isolation)
    try:
        failed = _through_gates(job, record, stage, limits, progress)
        if failed is None:
            progress("own_tests")
            finding = examine_own_tests(stage, limits=limits, threads=job.threads)
            record.take("own_tests", finding)
            failed = finding if isinstance(finding, Failed) else None
    finally:
        stage.remove()
    if failed is not None:
        return record.rejected("verify", failed)
    return Examination(
        verdict=Accepted(),
        stage="verify",
        gates=tuple(record.gates),
        workloads=tuple(record.workloads),
        artifact=record.artifact,
        seeds=record.seeds,
    )


def _through_gates(job: Job, record: _Record, stage: Stage, limits: Limits, progress: Progress) -> Failed | None:
    arena = Arena(ARENA_BYTES)
    try:
        with Session(stage, arena, limits=limits, threads=job.threads) as session:
            loaded = session.load((GuestFunction("kernel.py", job.entry_point),))
            if isinstance(loaded, Refused):
                message = loaded.reason.message
                failed = Failed(reason=loaded.reason, observed=message, threshold="kernel.py loads", log=loaded.log)
                record.take("load", failed)
                return failed
            probe = Probe(
                session,
                arena,
                operation=job.operation,
                shape=job.shape,
                held_out=job.held_out,
                dtype=job.dtype,
                policy=job.policy,
                entry=job.entry_point,
            )
            return _ask_all(record, probe, progress)
    finally:
        arena.close()


def _ask_all(record: _Record, probe: Probe, progress: Progress) -> Failed | None:
    for gate in GATES:
        progress(gate.name)
        finding = gate.examine(probe)
        record.seeds = tuple(probe.seeds)
        record.take(gate.name, finding)
        if isinstance(finding, Failed):
            return finding
    return None
