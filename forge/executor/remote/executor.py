"""The executor of another machine: it sends each call there, and checks what comes back."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from pydantic import ValidationError

from forge import __version__
from forge.domain.authoring import Screen
from forge.domain.device import Ceilings
from forge.domain.policy import Policy
from forge.domain.profile import CodeFacts, OperatorTime
from forge.domain.verdict import Accepted
from forge.errors import EnvironmentUnfit, RemoteFailed
from forge.executor import MayStop, ProfilerTool, Site
from forge.executor.remote.calls import (
    CALLS,
    VERSION,
    AskBuilt,
    AskCalibrate,
    AskCode,
    AskDrafts,
    AskFloor,
    AskJob,
    AskMeasure,
    AskSite,
    AskTool,
    Call,
    Hello,
    Refusal,
    finding_of,
    parsed_answer,
)
from forge.executor.remote.frames import Frame
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.gates import gates_for
from forge.lab.job import Incumbent, Job, Progress
from forge.lab.judge_version import gates_sha256
from forge.lab.profile.capture import Counters
from forge.lab.screen.screening import DraftScreening
from forge.lab.sent_job import sent
from forge.lab.timing.contender_failure import ContenderFailedError
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.screening import ContenderScreening
from forge.lab.timing.slope import SlopeSamples
from forge.lab.verification import Examination
from forge.sandbox import calling_off
from forge.sandbox.reply import ArtifactFile


class Connection(Protocol):
    """A connection to the Forge of one other machine. After an error it is opened anew by the next call."""

    name: str
    """Address, as messages show it."""
    node: str
    """Name of the other machine in evidence; this side chooses it."""

    def hello(self) -> bytes:
        """Open the connection unless it is open, and return the other side's greeting."""

    def ask(self, call: bytes, *, progress: Progress) -> Frame:
        """Send a call and return the answer or the refusal; raise RemoteFailed if the connection breaks."""

    def end(self) -> None:
        """Break the connection from another thread, without a wait; what is at work there ends."""

    def close(self) -> None:
        """Close the connection; what is at work there ends."""


def _quiet(_: str) -> None:
    """Show nothing."""


class RemoteExecutor:
    """Runs lab jobs on the machine behind a connection. It is described by itself, and judges with its own wall."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def site(self, policy: Policy) -> Site:
        """Describe the other machine, with the node name that this machine knows it by.

        Raises EnvironmentUnfit unless both machines judge with the same gates.
        """
        site: Site = self._ask(AskSite(policy=policy))
        ours = gates_sha256(policy)
        if site.gates_sha256 != ours:
            self._connection.close()
            raise EnvironmentUnfit(
                f"{self._connection.name} judges with gates {site.gates_sha256}, this machine with {ours}: expected "
                "the same Forge on both",
                hint="install the same version on both machines",
            )
        return replace(site, environment=site.environment.model_copy(update={"node": self._connection.node}))

    def calibrate(self) -> Ceilings:
        """Measure the highest rates of the other machine's device."""
        return self._ask(AskCalibrate())

    def examine(self, job: Job, *, progress: Progress) -> Examination:
        """Have the other machine judge a candidate; raise RemoteFailed if its answer lacks a part."""
        examined: Examination = self._ask(AskJob(call="examine", job=sent(job)), progress)
        if isinstance(examined.verdict, Accepted):
            _require_whole(examined, job, self._connection.name)
        return examined

    def examine_build(self, job: Job, *, progress: Progress) -> Examination:
        """Screen and build a candidate there."""
        return self._ask(AskJob(call="examine_build", job=sent(job)), progress)

    def measure(
        self,
        job: Job,
        artifact: tuple[ArtifactFile, ...],
        incumbent: Incumbent | None,
        contenders: Sequence[PresentContender] = (),
        *,
        ceilings: Ceilings | None,
        rng: random.Random,  # noqa: ARG002 (the other machine draws its own numbers)
        progress: Progress,
        may_stop: MayStop | None = None,  # noqa: ARG002 (a function doesn't cross: every pair is measured)
    ) -> SlopeSamples | ReplaySamples | Failed:
        """Time a candidate on the machine that runs the job, while no other job of Forge runs on its device."""
        call = AskMeasure(
            job=sent(job),
            artifact=artifact,
            incumbent=incumbent,
            contenders=tuple(contenders),
            ceilings=ceilings,
        )
        return self._ask(call, progress)

    def artifact_at(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress
    ) -> tuple[ArtifactFile, ...] | Failed:
        """Return the built files with the launch plan of the job's shape."""
        return self._ask(AskBuilt(call="artifact_at", job=sent(job), artifact=artifact), progress)

    def screen(self, job: Job, *, progress: Progress) -> ContenderScreening:
        """Have the other machine screen the job's contenders."""
        return self._ask(AskJob(call="screen", job=sent(job)), progress)

    def screen_drafts(self, job: Job, step: Screen, *, rng: random.Random, progress: Progress) -> DraftScreening:  # noqa: ARG002
        """Have the other machine screen an author's drafts."""
        return self._ask(AskDrafts(job=sent(job), step=step), progress)

    def floor_ns(self, job: Job, *, ceilings: Ceilings | None, resident: bool = False) -> float:
        """Return the shortest possible time on the machine that runs the job, in nanoseconds."""
        return self._ask(AskFloor(job=sent(job), ceilings=ceilings, resident=resident))

    def own_claims(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> dict[str, float]:
        """Return the numbers that the candidate's bench.py prints there."""
        return self._ask(AskBuilt(call="own_claims", job=sent(job), artifact=artifact), progress)

    def counters(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> Counters:
        """Return a profiler's counters of the candidate's launches there."""
        return self._ask(AskBuilt(call="counters", job=sent(job), artifact=artifact), progress)

    def operators(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress
    ) -> tuple[OperatorTime, ...]:
        """Return torch's profile of the candidate's calls there."""
        return self._ask(AskBuilt(call="operators", job=sent(job), artifact=artifact), progress)

    def machine_code(self, artifact: tuple[ArtifactFile, ...]) -> tuple[CodeFacts, ...]:
        """Return facts about the candidate's device code."""
        return self._ask(AskCode(artifact=artifact))

    def profiler(self, job: Job) -> ProfilerTool:
        """Return the profiler to use for a job there."""
        return self._ask(AskJob(call="profiler", job=sent(job)))

    def tool_version(self, tool: ProfilerTool) -> str:
        """Return the version of a profiler on the other machine."""
        return self._ask(AskTool(tool=tool))

    def _ask(self, call: Call, progress: Progress = _quiet) -> Any:
        """Send a call and return its answer, checked against its form; raise CalledOff if the work was called off."""
        try:
            with calling_off.wanted():
                calling_off.require_wanted()
                _require_same_forge(self._connection)
                with _endable(self._connection):
                    frame = self._connection.ask(CALLS.dump_json(call), progress=progress)
        except calling_off.CalledOff:
            self._connection.close()
            raise
        if frame.kind == "refusal":
            raise _error_of(self._connection.name, frame.payload)
        try:
            return parsed_answer(call.call, frame.payload)
        except RemoteFailed:
            self._connection.close()
            raise


@contextmanager
def _endable(connection: Connection) -> Iterator[None]:
    """Let the work behind a connection be called off while the block runs."""
    calling_off.began(connection)
    try:
        yield
    finally:
        calling_off.ended(connection)


def _require_whole(accepted: Examination, job: Job, name: str) -> None:
    """Raise RemoteFailed unless an acceptance has the answer of every gate, and no error beyond its bound."""
    answered = {gate.name for gate in accepted.gates if gate.verdict != "failed"}
    missing = [gate.name for gate in gates_for(job.definition) if gate.name not in answered]
    failed = [gate.name for gate in accepted.gates if gate.verdict == "failed"]
    beyond = [errors.inputs for errors in accepted.workloads if not errors.bound_used <= 1]
    if missing or failed or beyond or accepted.stage != "verify":
        why = ", ".join((*missing, *failed, *beyond)) or f"stage {accepted.stage}"
        raise RemoteFailed(f"{name} sent an acceptance that isn't whole ({why}): expected every gate to have passed")


def _require_same_forge(connection: Connection) -> None:
    try:
        there = Hello.model_validate_json(connection.hello())
    except ValidationError as error:
        raise RemoteFailed(
            f"{connection.name} sent no greeting of Forge ({error.errors()[0]['msg']}): "
            "expected a Forge of this version"
        ) from error
    if (there.version, there.forge_version) != (VERSION, __version__):
        connection.close()
        raise EnvironmentUnfit(
            f"{connection.name} has Forge {there.forge_version} (protocol {there.version}), this machine has "
            f"{__version__} (protocol {VERSION}): expected the same",
            hint="install the same version on both machines",
        )


def _error_of(name: str, untrusted: bytes) -> Exception:
    """Return the error that a refusal stands for: a contender's failure, or that the machine can't do it."""
    try:
        refusal = Refusal.model_validate_json(untrusted)
    except ValidationError as error:
        return RemoteFailed(
            f"{name} sent a refusal that can't be read ({error.errors()[0]['msg']}): expected a Forge of this version"
        )
    if refusal.contender is not None and refusal.failed is not None:
        return ContenderFailedError(refusal.contender, finding_of(refusal.failed))
    return EnvironmentUnfit(f"{name}: {refusal.message}", hint=refusal.hint)
