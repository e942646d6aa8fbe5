"""Answers the calls of another machine's Forge, by this process's standard input and output."""

import os
import sys
import threading
from contextlib import suppress

from forge.app.machine.chosen_executor import executor_here
from forge.executor.remote.answering import serve
from forge.executor.remote.frames import Frame, packed
from forge.lab.packages import require_lab


def answer_calls() -> None:
    """Answer calls until standard input ends. What anything else prints goes to stderr, not among the answers."""
    require_lab()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    calls, one_at_a_time = os.fdopen(os.dup(sys.stdin.fileno()), "rb"), threading.Lock()
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())

    def send(frame: Frame) -> None:
        with one_at_a_time:
            answers.write(packed(frame))
            answers.flush()

    with suppress(KeyboardInterrupt):
        serve(calls.read, send, executor_here())
