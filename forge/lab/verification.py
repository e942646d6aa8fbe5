"""Runs the gates in order on one candidate, and stops at the first refusal.

The candidate's bytes go in, findings come out. Nothing here imports, loads or trusts the candidate.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from forge.domain.evidence import Counterexample, GateResult, WorkloadErrors
from forge.domain.source_finding import SourceFinding
from forge.domain.verdict import Accepted, Rejected
from forge.lab import sanitizer
from forge.lab.calls import artifact, trusted
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.counterexample.shrink import shrink
from forge.lab.finding import Failed, Finding, NotAsked, Passed, result
from forge.lab.freed_memory import keep_freed_memory
from forge.lab.gates import GATES, gates_for, threads
from forge.lab.gates.gate import Gate
from forge.lab.gates.own_tests import examine_own_tests
from forge.lab.inputs.undivided import NOTHING_DIVIDED
from forge.lab.job import Job, Progress
from forge.lab.judge_processes import SERVER
from forge.lab.launch_plan.examine import examine_plan
from forge.lab.own_guests import OwnGuests
from forge.lab.sources.screen import examine_sources
from forge.lab.torch_beside import import_torch_beside
from forge.sandbox.build import Built
from forge.sandbox.reply import ArtifactFile


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The result of examining a candidate."""

    verdict: Accepted | Rejected
    stage: str
    """Stage that was reached: screen, build or verify."""
    gates: tuple[GateResult, ...]
    workloads: tuple[WorkloadErrors, ...] = ()
    counterexample: Counterexample | None = None
    artifact: tuple[ArtifactFile, ...] = ()
    seeds: tuple[int, ...] = ()
    log: str = ""
    findings: tuple[SourceFinding, ...] = ()
    """Places in the sources that a person should look at."""
    log_withheld: bool = False
    """Whether the log may name held-out shapes, so that its words aren't shown to the author."""


OWN_TESTS_FILE = "test_correctness.py"
"""File with the author's own tests. A submission has one; a check of a kernel alone doesn't."""
Step = Callable[[Job, "_Record", Progress], Failed | None]
"""Function for one part of an examination: it records its findings, and returns the refusal that ends it."""


@dataclass
class _Record:
    gates: list[GateResult] = field(default_factory=list)
    workloads: list[WorkloadErrors] = field(default_factory=list)
    artifact: tuple[ArtifactFile, ...] = ()
    seeds: tuple[int, ...] = ()
    findings: tuple[SourceFinding, ...] = ()
    log_withheld: bool = False

    def take(self, name: str, finding: Finding) -> Failed | None:
        """Note a finding; return it if the examination ends with it."""
        self.gates.append(result(name, finding))
        match finding:
            case Passed(errors=errors):
                self.workloads += errors
                return None
            case NotAsked():
                return None
            case Failed():
                return finding

    def ended(self, stage: str, verdict: Accepted | Rejected) -> Examination:
        return Examination(
            verdict=verdict,
            stage=stage,
            gates=tuple(self.gates),
            workloads=tuple(self.workloads),
            artifact=self.artifact,
            seeds=self.seeds,
            findings=self.findings,
        )

    def rejected(self, stage: str, failed: Failed) -> Examination:
        return replace(
            self.ended(stage, Rejected(reason=failed.reason)),
            counterexample=failed.counterexample,
            log=failed.log,
            log_withheld=self.log_withheld,
        )


def examine(job: Job, *, progress: Progress) -> Examination:
    """Judge one candidate; raise EnvironmentUnfit if the machine fails, not the candidate."""
    keep_freed_memory()
    if job.runner.launches_plans:
        trusted.prepare(job)
    return _through((("screen", _screen), ("build", _build), ("verify", _verify)), job, progress)


def examine_build(job: Job, *, progress: Progress) -> Examination:
    """Screen and build a candidate whose target isn't here; an accepted result says only that it was built.

    Raise EnvironmentUnfit if this machine can't build it.
    """
    return _through((("screen", _screen), ("build", _build)), job, progress)


def _through(stages: tuple[tuple[str, Step], ...], job: Job, progress: Progress) -> Examination:
    """Take the candidate through stages, up to the first that refuses it."""
    record = _Record()
    for stage, step in stages:
        failed = step(job, record, progress)
        if failed is not None:
            return record.rejected(stage, failed)
    return record.ended(stages[-1][0], Accepted())


def _screen(job: Job, record: _Record, progress: Progress) -> Failed | None:
    progress("sources")
    kernel = job.files["kernel.py"].decode()
    screening = examine_sources(
        kernel,
        metadata=job.metadata,
        language=job.language,
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


def _verify(job: Job, record: _Record, progress: Progress) -> Failed | None:
    import_torch_beside()
    if _guests_run_beside(job):
        SERVER.start()
    separate = _SeparateQuestions(job, record.artifact, progress)
    with ThreadPoolExecutor(len(separate.questions)) as pool:
        return _through_gates(job, record, progress, start_others=lambda: separate.begin(pool)) or separate.take(
            record
        )


def _through_gates(
    job: Job, record: _Record, progress: Progress, *, start_others: Callable[[], None]
) -> Failed | None:
    files = artifact.staged_files(job, record.artifact)
    with (
        staged(job, files, {}) as stage,
        loaded(job, stage, job.gate_limits, label="load", fills_memory=True) as kernel,
        NOTHING_DIVIDED if _guests_run_beside(job) else nullcontext(),
        OwnGuests(job, stage, files, progress) as own,
    ):
        if isinstance(kernel, Failed):
            trusted.require_device(job)
            return record.take("load", kernel)
        gates = gates_for(job.definition)
        record.seeds = (job.seed,)
        beside = [gate for gate in gates if gate.own_guest or gate.beside] if _guests_run_beside(job) else []
        answers = own.ask_all(kernel, gates, beside=beside, start_others=start_others)
        for gate in gates:
            answer = answers.get(gate.name) or own.answer(gate)
            record.seeds += answer.seeds
            record.log_withheld = answer.saw_held_out
            failed = record.take(gate.name, answer.finding)
            if failed is not None:
                if gate is gates[0]:
                    trusted.require_device(job)
                return _with_a_smaller_case(job, kernel, gate, failed, progress)
    return None


def _with_a_smaller_case(job: Job, kernel: LoadedKernel, gate: Gate, failed: Failed, progress: Progress) -> Failed:
    """Return a gate's refusal with the smallest case that also fails, if one call alone shows the fault."""
    if not gate.one_call_shows_it or "sizes" not in job.definition.declares:
        return failed
    progress("shrink")
    kernel.unfilled_share = 0.0  # so that reads of unwritten memory show at each smaller shape
    return shrink(kernel, failed)


def _guests_run_beside(job: Job) -> bool:
    """Whether guests of one candidate run side by side, since the host's processors mostly wait for each.

    They don't if a guest computes the reference's answers: all would ask it, and wait. Nor do they if there is a
    limit for all together, which one process counts.
    """
    return job.runner.leaves_host_idle and job.definition.runs_here and job.allowance is None


@dataclass(frozen=True, kw_only=True)
class SeparateQuestion:
    """A question whose guests are started or built in another way than those of the gates."""

    name: str
    applies: Callable[[Job], bool]
    ask: Callable[[Job, tuple[ArtifactFile, ...]], tuple[Finding, tuple[ArtifactFile, ...]]]
    """Function that returns the finding, and files to keep with the candidate."""
    saw_held_out: bool = False
    """Whether its guests are asked at held-out shapes, so that their words may name the shapes."""


class _SeparateQuestions:
    """The separate questions of one candidate.

    On a GPU they run beside the later gates, since each mostly starts guests and waits. Otherwise they run
    afterwards.
    """

    def __init__(self, job: Job, artifact: tuple[ArtifactFile, ...], progress: Progress) -> None:
        self._job, self._artifact, self._progress = job, artifact, progress
        self._begun: list[Future[tuple[Finding, tuple[ArtifactFile, ...]]]] = []
        self.questions = [question for question in SEPARATE_QUESTIONS if question.applies(job)]

    def begin(self, pool: ThreadPoolExecutor) -> None:
        """Start the questions if they run beside the gates."""
        if _guests_run_beside(self._job):
            self._begun = [pool.submit(self._ask, question) for question in self.questions]

    def take(self, record: _Record) -> Failed | None:
        """Record the findings, up to the first refusal."""
        answers = (asked.result() for asked in self._begun) if self._begun else map(self._ask, self.questions)
        for question, (finding, files) in zip(self.questions, answers, strict=True):
            record.artifact = (*record.artifact, *files)
            record.log_withheld = question.saw_held_out
            failed = record.take(question.name, finding)
            if failed is not None:
                return failed
        return None

    def _ask(self, question: SeparateQuestion) -> tuple[Finding, tuple[ArtifactFile, ...]]:
        self._progress(question.name)
        return question.ask(self._job, self._artifact)


def _ask_own_tests(job: Job, built: tuple[ArtifactFile, ...]) -> tuple[Finding, tuple[ArtifactFile, ...]]:
    if OWN_TESTS_FILE not in job.files:
        return NotAsked(observed=f"no {OWN_TESTS_FILE} was given", threshold="its own tests pass"), ()
    with staged(job, artifact.staged_files(job, built), {}) as stage:
        limits = job.limits(job.policy.verify_limit_s)
        return examine_own_tests(stage, limits=limits, threads=job.threads), ()


SEPARATE_QUESTIONS: tuple[SeparateQuestion, ...] = (
    SeparateQuestion(
        name="plan",
        applies=lambda job: job.runner.launches_plans,
        ask=lambda job, built: examine_plan(job, artifact.staged_files(job, built)),
    ),
    SeparateQuestion(
        name="threads",
        applies=threads.applies,
        ask=lambda job, built: (threads.examine(job, artifact.staged_files(job, built)), ()),
    ),
    SeparateQuestion(
        name="sanitizer",
        applies=sanitizer.applies,
        ask=lambda job, built: (sanitizer.examine(job, built), ()),
        saw_held_out=True,
    ),
    SeparateQuestion(name="own_tests", applies=lambda _: True, ask=_ask_own_tests),
)
"""Questions that are asked after the gates, or beside them, in the order in which their findings count."""

ORDER = (
    *("sources", "build", "load"),
    *(gate.name for gate in GATES),
    *(question.name for question in SEPARATE_QUESTIONS),
)
"""Names of all questions in the order in which they are asked; `load` is recorded only if it fails."""
