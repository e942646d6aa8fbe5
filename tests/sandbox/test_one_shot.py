"""One command for guests that keep to no protocol; each is a real process behind the walls."""

import pytest

from forge.languages import find_language
from forge.sandbox.limits import Limits
from forge.sandbox.one_shot import run_one_shot
from forge.sandbox.reply import Refused
from forge.sandbox.stage import SERVE, Program, Stage
from tests.candidates import isolation

pytestmark = pytest.mark.usefixtures("walls")

PROTOCOL = """
import json, os, sys, time
sys.path.insert(0, __file__.rpartition("/")[0])
from guest import channel, wire

def reply(completed, call_id=0):
    os.write(4, wire.pack_record(wire.Record(call_id, 0, completed, ())))
"""
LISTEN = "said = channel.read_command()\n"
ARENA_BYTES = 1 << 16


def answer_of(program: str, *, limit_s: float = 120.0) -> bytes | Refused:
    """The answer of a guest that runs `program`; it needs no torch."""
    stage = Stage(Program(language=find_language("torch"), files={"kernel.py": b""}), isolation())
    (stage._directory / SERVE).write_text(PROTOCOL + program)
    try:
        limits = Limits(wall_s=limit_s)
        return run_one_shot(
            stage, SERVE, {"asked": "x"}, what="the look", most_bytes=ARENA_BYTES, limits=limits, threads=1
        )
    finally:
        stage.remove()


def refusal_of(program: str, *, limit_s: float = 120.0) -> Refused:
    answer = answer_of(program, limit_s=limit_s)
    assert isinstance(answer, Refused), answer
    return answer


def test_a_guest_that_keeps_to_the_protocol_hands_over_its_bytes() -> None:
    assert answer_of(LISTEN + "os.pwrite(5, b'found', 0); reply(5); time.sleep(600)") == b"found"


def test_a_result_larger_than_the_arena_is_an_error_and_not_a_read_past_it() -> None:
    with pytest.raises(ValueError, match="larger than the arena"):
        answer_of(LISTEN + "reply(2**31); time.sleep(600)")


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("os._exit(3)", "RUNTIME_ERROR"),
        (LISTEN + "os._exit(3)", "RUNTIME_ERROR"),
        (LISTEN + "os.kill(os.getpid(), 11)", "RUNTIME_ERROR"),
        (LISTEN + "os.close(4); time.sleep(600)", "TAMPERING"),
        (LISTEN + "os.write(4, b'done'); time.sleep(600)", "TAMPERING"),
        (LISTEN + "os.write(4, b'x' * (wire.RECORD_BYTES + 1)); time.sleep(600)", "TAMPERING"),
        (LISTEN + "reply(0, call_id=7); time.sleep(600)", "TAMPERING"),
    ],
)
def test_a_guest_that_breaks_the_protocol_is_refused_with_the_reason(program: str, code: str) -> None:
    answer = refusal_of(program)
    assert (answer.reason.code, answer.from_load) == (code, False)


def test_a_guest_that_ends_before_its_command_is_refused_with_its_log() -> None:
    answer = refusal_of("os.write(2, b'no such library'); os.close(3); os._exit(3)")
    assert (answer.reason.code, answer.log) == ("RUNTIME_ERROR", "no such library")


def test_a_guest_that_says_nothing_gets_no_verdict_by_the_clock() -> None:
    answer = refusal_of(LISTEN + "time.sleep(600)", limit_s=1.5)
    assert (answer.reason.code, answer.from_load) == ("TIMEOUT", True)
    assert "1.5 s by the clock" in answer.reason.message
