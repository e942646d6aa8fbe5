"""A conversation with guests that keep to no protocol; each is a real process behind the walls."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from forge.errors import EnvironmentUnfit
from forge.languages import find_language
from forge.sandbox.arena import Arena
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused, Returned
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import INTERPRETS, Program, Stage
from tests.candidates import isolation

pytestmark = pytest.mark.usefixtures("walls")

PROTOCOL = """
import os, sys, time
sys.path.insert(0, __file__.rpartition("/")[0])
from guest import channel, wire

def record(call_id, status=0, completed=0):
    return wire.pack_record(wire.Record(call_id, status, completed, ()))
"""
START = "channel.read_command(); os.write(4, record(0))\n"
"""The guest's first exchange, before it loads a candidate."""
FUNCTIONS = (GuestFunction("kernel.py", "f"),)


@contextmanager
def conversation(
    program: str, *, limit_s: float = 120.0, starts: bool = True, environment: Mapping[str, str] | None = None
) -> Iterator[Session]:
    """A guest that runs `program` in the place of the harness's loop, after its start; it needs no torch."""
    files = {"kernel.py": b""}
    stage = Stage(Program(language=find_language("torch"), files=files, environment=environment or {}), isolation())
    (stage._directory / "serve.py").write_text(PROTOCOL + START * starts + program)
    arena = Arena(1 << 16)
    try:
        with Session(stage, arena, limits=Limits(wall_s=limit_s), threads=1) as session:
            yield session
    finally:
        arena.close()
        stage.remove()


def load(session: Session) -> Returned | Refused:
    return session.load(FUNCTIONS)


def code(answer: Returned | Refused) -> str:
    assert isinstance(answer, Refused)
    return answer.reason.code


SERVE = """
channel.read_command()
os.write(4, record(0))
"""


def test_a_guest_that_keeps_to_the_protocol_is_heard() -> None:
    program = (
        SERVE + "go = channel.read_command(); os.write(4, record(go.call_id, completed=go.count)); time.sleep(600)"
    )
    with conversation(program) as session:
        assert isinstance(load(session), Returned)
        answer = session.release(0, 0, 3, (1e-6,))
        assert isinstance(answer, Returned)
        assert answer.elapsed_ns > 0


def test_a_layout_that_lacks_memory_is_no_exception_of_a_call() -> None:
    answers = "os.write(4, record(go.call_id, wire.NO_ROOM))"
    program = SERVE + f"channel.read_command(); go = channel.read_command(); {answers}; time.sleep(600)"
    with conversation(program) as session:
        assert isinstance(load(session), Returned)
        session.lay_out((), scalars=0)
        answer = session.release(0, 0, 1, ())
        assert code(answer) == "OUT_OF_MEMORY"
        assert isinstance(answer, Refused)
        assert not answer.raised, "a domain allows a call outside it to raise; nothing was called here"


@pytest.mark.parametrize(("environment", "expected"), [({}, "TAMPERING"), ({INTERPRETS: "1"}, "INFRASTRUCTURE")])
def test_only_an_interpreted_call_can_lack_a_gpu(environment: dict[str, str], expected: str) -> None:
    program = SERVE + "go = channel.read_command(); os.write(4, record(go.call_id, wire.NEEDS_GPU)); time.sleep(600)"
    with conversation(program, environment=environment) as session:
        assert isinstance(load(session), Returned)
        assert code(session.release(0, 0, 1, ())) == expected


def test_bytes_before_they_are_asked_for_are_tampering() -> None:
    with conversation(
        "os.write(4, record(0)); print('written', flush=True); time.sleep(600)", starts=False
    ) as session:
        until_s = time.monotonic() + 60
        while "written" not in session._guest.log():
            assert time.monotonic() < until_s
            time.sleep(0.01)
        assert code(load(session)) == "TAMPERING"


@pytest.mark.parametrize(
    "said",
    [
        "record(0) * 2",
        "record(0) + b'x'",
        "record(0)[:-1]",
        "b'x'",
        "os.urandom(len(record(0)))",
        "record(1)",
        "record(2**64 - 1)",
    ],
)
def test_anything_but_one_record_for_this_call_is_tampering(said: str) -> None:
    with conversation(f"channel.read_command(); os.write(4, {said}); time.sleep(600)") as session:
        assert code(load(session)) == "TAMPERING"


CUTS = ("1", "4", "wire.RECORD_HEADER.size", "wire.RECORD_BYTES // 2", "wire.RECORD_BYTES - 1")


@pytest.mark.parametrize("length", CUTS)
def test_a_reply_that_is_cut_off_is_tampering(length: str) -> None:
    with conversation(f"channel.read_command(); os.write(4, record(0)[:{length}]); time.sleep(600)") as session:
        assert code(load(session)) == "TAMPERING"


@pytest.mark.parametrize("length", CUTS)
@pytest.mark.parametrize("crash", ["os._exit(0)", "os.kill(os.getpid(), 11)"])
def test_a_crash_in_the_middle_of_a_reply_is_refused(crash: str, length: str) -> None:
    with conversation(f"channel.read_command(); os.write(4, record(0)[:{length}]); {crash}") as session:
        assert code(load(session)) == "TAMPERING", "an honest guest writes a record at once, which a pipe never parts"


def test_a_crash_behind_a_whole_reply_is_no_answer_to_the_next_command() -> None:
    program = SERVE + "channel.read_command(); os.kill(os.getpid(), 11)"
    with conversation(program) as session:
        assert isinstance(load(session), Returned)
        assert code(session.release(0, 0, 1, ())) == "RUNTIME_ERROR"


def test_a_second_record_that_comes_late_is_tampering() -> None:
    with conversation(SERVE + "time.sleep(0.2); os.write(4, record(0)); time.sleep(600)") as session:
        assert isinstance(load(session), Returned)
        assert code(session.release(0, 0, 1, ())) == "TAMPERING"


def test_a_record_that_counts_other_calls_is_tampering() -> None:
    with conversation(
        SERVE + "go = channel.read_command(); os.write(4, record(go.call_id, completed=2)); time.sleep(600)"
    ) as session:
        load(session)
        assert code(session.release(0, 0, 3, ())) == "TAMPERING"


def test_a_closed_channel_of_a_living_guest_is_tampering() -> None:
    with conversation("channel.read_command(); os.close(4); time.sleep(600)") as session:
        assert code(load(session)) == "TAMPERING"


def test_an_end_before_the_answer_is_the_guests_failure() -> None:
    with conversation("channel.read_command(); print('farewell', flush=True); os._exit(3)") as session:
        answer = load(session)
        assert code(answer) == "RUNTIME_ERROR"
        assert isinstance(answer, Refused)
        assert "status 3" in answer.reason.message
        assert "farewell" in answer.log


def test_a_guest_that_ends_before_it_is_asked_is_heard_of() -> None:
    with conversation("channel.read_command(); os.write(4, record(0)); os._exit(0)") as session:
        assert isinstance(load(session), Returned)
        assert code(session.release(0, 0, 1, ())) == "RUNTIME_ERROR"


@pytest.mark.parametrize("program", ["os._exit(1)", "channel.read_command(); os._exit(1)"])
def test_a_guest_that_ends_before_a_candidate_is_loaded_is_no_candidates_failure(program: str) -> None:
    said = "print('OpenBLAS error: Memory allocation still failed', flush=True)\n"
    with (
        conversation(said + program, starts=False) as session,
        pytest.raises(
            EnvironmentUnfit, match=r"couldn't import torch .*status 1.*: OpenBLAS error: Memory allocation"
        ),
    ):
        load(session)


@pytest.mark.parametrize("program", ["time.sleep(600)", "channel.read_command()\nwhile True: pass"])
def test_silence_ends_at_the_time_limit(program: str) -> None:
    with conversation(program, limit_s=1.5) as session:
        answer = load(session)
        assert code(answer) == "TIMEOUT"
        assert isinstance(answer, Refused)
        assert answer.from_load


def test_a_guest_that_doesnt_read_its_commands_cant_hold_the_host() -> None:
    many = tuple(GuestFunction("kernel.py", f"f{number}") for number in range(4000))
    with conversation("time.sleep(600)", limit_s=1.5, starts=False) as session:
        assert code(session.load(FUNCTIONS)) == "TIMEOUT"
    with conversation("time.sleep(600)", limit_s=1.5) as session:
        assert code(session.load(many)) == "TIMEOUT"


def test_a_long_log_costs_no_time_between_a_reply_and_the_look_at_it() -> None:
    """Otherwise a guest could reply early and work while the host renders what it has printed."""
    program = (
        "os.write(2, bytes(64 << 10))\n"
        + SERVE
        + "go = channel.read_command(); os.write(4, record(go.call_id, completed=1)); time.sleep(600)"
    )
    with conversation(program) as session:
        load(session)
        began_ns = time.thread_time_ns()
        answer = session.release(0, 0, 1, ())
        took_ns = time.thread_time_ns() - began_ns
        assert isinstance(answer, Returned)
        began_ns = time.thread_time_ns()
        session._guest.log()
        assert time.thread_time_ns() - began_ns > took_ns


def test_all_that_was_printed_before_a_reply_is_in_the_log() -> None:
    """The thread that reads the log may not have had its turn when the reply is there."""
    lines = "for number in range(500): os.write(2, b'line %d of a long traceback, as Python prints it\\n' % number)\n"
    with conversation("channel.read_command()\n" + lines + "os.write(4, record(0, 1)); time.sleep(600)") as session:
        answer = load(session)
        assert isinstance(answer, Refused)
        assert "line 499 of" in answer.log


LATE = """
piece = bytes(1 << 20)
file = os.open("/scratch/late", os.O_CREAT | os.O_RDWR)
go = channel.read_command()
os.write(4, record(go.call_id, completed=1))
before_ns = time.process_time_ns()
os.pwritev(file, [piece] * 512, 0)
spent_ns = time.process_time_ns() - before_ns
go = channel.read_command()
print("spent", spent_ns, flush=True)
os.write(4, record(go.call_id, completed=1))
time.sleep(600)
"""
"""A write of 512 MiB in one system call, which no stop signal interrupts."""


def test_work_between_a_reply_and_the_stop_is_time_of_the_release() -> None:
    """Otherwise a guest could reply first and work afterwards, for as long as it delays its stop."""
    with conversation(SERVE + LATE) as session:
        load(session)
        answers = [session.release(0, 0, 1, ()), session.release(0, 0, 1, ())]
        spent_ns = int(session._guest.log().split()[-1])
        elapsed_ns = [answer.elapsed_ns for answer in answers if isinstance(answer, Returned)]
        assert len(elapsed_ns) == 2
        assert sum(elapsed_ns) >= spent_ns, "a stop before the write puts it off to the next release"
