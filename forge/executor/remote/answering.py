"""Carries out the calls of another machine with this machine's own executor, wall and clock.

This process opens no ledger and holds no key. It ends with the connection, and its guests end with it.
"""

import os
import queue
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import assert_never

from pydantic import ValidationError

from forge import __version__
from forge.domain.policy import IsolationLevel
from forge.errors import EnvironmentUnfit, ForgeError, RemoteFailed
from forge.executor import Executor, Site
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
    packed_answer,
    refused_of,
)
from forge.executor.remote.frames import LONGEST, Frame, read_frame
from forge.lab.job import Job, Progress
from forge.lab.sent_job import received
from forge.lab.timing.contender_failure import ContenderFailedError
from forge.sandbox.isolation import at_least

ALIVE_S = 5.0
"""Time between two signs of life of a machine that is at work, in seconds. Chosen; a shorter time sends more
messages, a longer one finds a lost machine later."""
END_S = 10.0
"""Time that a call has to end its guests after the connection ended, in seconds. The process's end ends them too."""
Send = Callable[[Frame], None]
"""Function that sends a message; threads may call it side by side."""


def hello() -> Frame:
    """Return the first message: which Forge answers here."""
    greeting = Hello(version=VERSION, forge_version=__version__)
    return Frame("hello", greeting.model_dump_json().encode())


def serve(read: Callable[[int], bytes], send: Send, executor: Executor) -> None:
    """Answer one call after another until the stream ends.

    A thread of its own reads. If the connection ends, it interrupts the call that is running.
    """
    send(hello())
    calls, answering = _Incoming(read), Answering(executor)
    threading.Thread(target=calls.run, daemon=True).start()
    with suppress(KeyboardInterrupt, BrokenPipeError):
        while (payload := calls.wait()) is not None:
            with signs_of_life(send):
                reply = answering.answer(payload, lambda step: send(progress_frame(step)))
            send(reply)


class Answering:
    """Answers the calls of one connection."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._site: Site | None = None
        """Site that was described last."""

    def answer(self, untrusted: bytes, progress: Progress) -> Frame:
        """Carry out one call; return its answer, or the refusal that says what it ended with."""
        try:
            call = CALLS.validate_json(untrusted)
            return Frame("answer", packed_answer(call.call, self._carry_out(call, progress)))
        except ValidationError as error:
            refusal = Refusal(
                code=RemoteFailed.code, message=f"this machine can't read the call: {error.errors()[0]}"
            )
        except ContenderFailedError as error:
            refusal = Refusal(
                code="CONTENDER", message=str(error), contender=error.name, failed=refused_of(error.failed)
            )
        except ForgeError as error:
            refusal = Refusal(code=error.code, message=error.message, hint=error.hint)
        except OSError as error:
            refusal = Refusal(code=EnvironmentUnfit.code, message=f"{type(error).__name__}: {error}")
        return Frame("refusal", refusal.model_dump_json().encode())

    def _carry_out(self, call: Call, progress: Progress) -> object:
        match call:
            case AskSite():
                self._site = self._executor.site(call.policy)
                return self._site
            case AskCalibrate():
                return self._executor.calibrate()
            case AskCode():
                return self._executor.machine_code(call.artifact)
            case AskTool():
                return self._executor.tool_version(call.tool)
            case _:
                job = received(call.job)
                self._require_described(job)
                return _of_job(call, job, self._executor, progress)

    def _require_described(self, job: Job) -> None:
        """Raise EnvironmentUnfit unless a job is for this machine as it was described, and its wall is allowed."""
        site = self._site
        if site is None or job.isolation != site.isolation or job.gpu not in (None, site.device):
            raise EnvironmentUnfit("this job is for another machine, or for this one as it was before: ask again")
        require_strong_enough(site.isolation.level, job.policy.minimum_isolation)


def require_strong_enough(level: IsolationLevel, minimum: IsolationLevel) -> None:
    """Raise EnvironmentUnfit if this machine's sandbox is weaker than a policy allows."""
    if not at_least(level, minimum):
        raise EnvironmentUnfit(
            f"this machine's sandbox is {level}: the policy allows none weaker than {minimum}", hint="forge doctor"
        )


def _of_job(
    call: AskJob | AskBuilt | AskMeasure | AskDrafts | AskFloor, job: Job, executor: Executor, progress: Progress
) -> object:
    match call:
        case AskJob():
            return _about_job(call, job, executor, progress)
        case AskBuilt():
            return _about_built(call, job, executor, progress)
        case AskFloor():
            return executor.floor_ns(job, ceilings=call.ceilings, resident=call.resident)
        case AskDrafts():
            return executor.screen_drafts(job, call.step, rng=random.SystemRandom(), progress=progress)
        case AskMeasure():
            return executor.measure(
                job,
                call.artifact,
                call.incumbent,
                call.contenders,
                ceilings=call.ceilings,
                rng=random.SystemRandom(),
                progress=progress,
            )
        case _:
            assert_never(call)


def _about_job(call: AskJob, job: Job, executor: Executor, progress: Progress) -> object:
    match call.call:
        case "examine":
            return executor.examine(job, progress=progress)
        case "examine_build":
            return executor.examine_build(job, progress=progress)
        case "screen":
            return executor.screen(job, progress=progress)
        case "profiler":
            return executor.profiler(job)
        case _:
            assert_never(call.call)


def _about_built(call: AskBuilt, job: Job, executor: Executor, progress: Progress) -> object:
    match call.call:
        case "artifact_at":
            return executor.artifact_at(job, call.artifact, progress=progress)
        case "own_claims":
            return executor.own_claims(job, call.artifact, progress=progress)
        case "counters":
            return executor.counters(job, call.artifact, progress=progress)
        case "operators":
            return executor.operators(job, call.artifact, progress=progress)
        case _:
            assert_never(call.call)


class _Incoming:
    """The calls that came, in order. The end of the stream interrupts a call that is at work."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._calls: queue.Queue[bytes | None] = queue.Queue()
        self._at_work = False

    def run(self) -> None:
        """Read until the stream ends; then end the call that is at work, whose guests end with it."""
        try:
            while (frame := read_frame(self._read)) is not None and frame.kind == "call":
                self._calls.put(frame.payload)
        except RemoteFailed:
            pass
        finally:
            self._calls.put(None)
            if self._at_work:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(END_S)
                os._exit(1)

    def wait(self) -> bytes | None:
        """Return the next call; None at the end."""
        self._at_work = False
        call = self._calls.get()
        self._at_work = call is not None
        return call


@contextmanager
def signs_of_life(send: Send) -> Iterator[None]:
    """Send a sign of life every few seconds until the block ends."""
    done = threading.Event()

    def run() -> None:
        with suppress(OSError):
            while not done.wait(ALIVE_S):
                send(Frame("alive", b""))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def progress_frame(step: str) -> Frame:
    """Return one step of progress as a message."""
    return Frame("progress", step.encode()[: LONGEST["progress"]])
