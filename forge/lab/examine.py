"""Runs the gates in order on one candidate and stops at the first refusal.

The candidate's bytes go in, findings come out. Nothing here imports, loads or believes the candidate.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from forge.domain.evidence import Counterexample, GateResult, WorkloadErrors
from forge.domain.source_finding import SourceFinding
from forge.domain.verdict import Accepted, Rejected
from forge.lab import artifact, sanitizer, trusted
from forge.lab.finding import Failed, Finding, Gate, Passed, result
from forge.lab.gates import GATES
from forge.lab.job import Job, Progress
from forge.lab.own_tests import examine_own_tests
from forge.lab.plan.examine import examine_plan
from forge.lab.reference import gates as reference_gates
from forge.lab.shrink import shrink
from forge.lab.sources import examine_sources
from forge.lab.subject import loaded, staged
from forge.sandbox.build import Built
from forge.sandbox.reply import ArtifactFile


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
    findings: tuple[SourceFinding, ...] = ()
    """What a person should look at in the sources."""


Step = Callable[[Job, "_Record", Progress], Failed | None]
"""One part of an examination: it notes what it finds, and returns what ends it."""


@dataclass
class _Record:
    gates: list[GateResult] = field(default_factory=list)
    workloads: list[WorkloadErrors] = field(default_factory=list)
    artifact: tuple[ArtifactFile, ...] = ()
    seeds: tuple[int, ...] = ()
    findings: tuple[SourceFinding, ...] = ()

    def take(self, name: str, finding: Finding) -> Failed | None:
        """Note a finding; return it if the examination ends with it."""
        self.gates.append(result(name, finding))
        match finding:
            case Passed(errors=errors):
                self.workloads += errors
                return None
            case Failed():
                return finding

    def accepted(self) -> Examination:
        return Examination(
            verdict=Accepted(),
            stage="verify",
            gates=tuple(self.gates),
            workloads=tuple(self.workloads),
            artifact=self.artifact,
            seeds=self.seeds,
            findings=self.findings,
        )

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
            findings=self.findings,
        )


def examine(job: Job, *, progress: Progress) -> Examination:
    """Judge one candidate; raise EnvironmentUnfit where the machine, not the candidate, fails."""
    record = _Record()
    if job.device == "cuda" and job.operation.own is None:
        trusted.prepare(job)
    steps: tuple[tuple[str, Step], ...] = (
        ("screen", _screen),
        ("build", _build),
        ("verify", _through_gates),
        ("verify", _afterwards),
    )
    for stage, step in steps:
        failed = step(job, record, progress)
        if failed is not None:
            return record.rejected(stage, failed)
    return record.accepted()


def _screen(job: Job, record: _Record, progress: Progress) -> Failed | None:
    progress("sources")
    kernel = job.files["kernel.py"].decode()
    screening = examine_sources(
        kernel,
        metadata=job.metadata,
        language=job.language.name,
        entry_point=job.entry_point,
        forbids=job.language.forbids if job.forbidding else frozenset(),
    )
    record.findings = screening.findings
    return record.take("sources", screening.finding)


def _build(job: Job, record: _Record, progress: Progress) -> Failed | None:
    if not job.language.builds:
        return None
    progress("build")
    built = artifact.build_artifact(job)
    record.artifact = built.files if isinstance(built, Built) else ()
    return record.take("build", artifact.finding(built))


def _through_gates(job: Job, record: _Record, progress: Progress) -> Failed | None:
    files = artifact.staged_files(job, record.artifact)
    # freed memory is filled with a pattern, so that reading it before writing shows
    with (
        staged(job, files, {"MALLOC_PERTURB_": "165"}) as stage,
        loaded(job, stage, job.limits(job.policy.verify_limit_s)) as probe,
    ):
        if isinstance(probe, Failed):
            if job.device == "cuda" and job.operation.own is None:
                trusted.require_device(job)
            return record.take("load", probe)
        for gate in gates_of(job):
            progress(gate.name)
            finding = gate.examine(probe)
            record.seeds = tuple(probe.seeds)
            failed = record.take(gate.name, finding)
            if failed is not None:
                if job.operation.own is not None:
                    return failed  # smaller questions may be none that the reference answers
                if job.device == "cuda" and gate is GATES[0]:
                    trusted.require_device(job)
                progress("shrink")
                return shrink(probe, gate.name, failed)
    return None


def gates_of(job: Job) -> tuple[Gate, ...]:
    """What is asked of a candidate, in order."""
    return GATES if job.operation.own is None else reference_gates.GATES


Answer = tuple[str, Finding, tuple[ArtifactFile, ...]]
"""A gate's name, what it found, and files to keep with the candidate."""


def _afterwards(job: Job, record: _Record, progress: Progress) -> Failed | None:
    """What asks guests of its own: side by side on a GPU, where each mostly starts and waits."""
    questions: list[Callable[[Job, _Record], Answer]] = [_own_tests]
    if sanitizer.applies(job) and (job.operation.own is None or job.device == "cpu"):
        questions.insert(0, _sanitized)
    if job.device == "cuda" and job.operation.own is None:
        questions.insert(0, _planned)

    def ask(question: Callable[[Job, _Record], Answer]) -> Answer:
        progress(question.__name__.removeprefix("_"))
        return question(job, record)

    with ThreadPoolExecutor(len(questions)) as pool:
        for name, finding, files in (pool.map if job.device == "cuda" else map)(ask, questions):
            record.artifact = (*record.artifact, *files)
            failed = record.take(name, finding)
            if failed is not None:
                return failed
    return None


def _planned(job: Job, record: _Record) -> Answer:
    return "plan", *examine_plan(job, artifact.staged_files(job, record.artifact))


def _sanitized(job: Job, record: _Record) -> Answer:
    return "sanitizer", sanitizer.examine(job, record.artifact), ()


def _own_tests(job: Job, record: _Record) -> Answer:
    with staged(job, artifact.staged_files(job, record.artifact), {}) as stage:
        limits = job.limits(job.policy.verify_limit_s)
        return "own_tests", examine_own_tests(stage, limits=limits, threads=job.threads), ()
