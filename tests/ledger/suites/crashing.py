"""Performs acts in children that die by SIGKILL at their n-th durable operation. Run as a program: it forks.

Reads one JSON object a line, with `home`, `act`, `pick` and `fatal`; answers each with whether the child was killed.
"""

import json
import os
import signal
import sys
from pathlib import Path

from tests.app.killing import Countdown, install
from tests.ledger.suites.acts import act


def killed(home: Path, name: str, pick: int, fatal: int) -> bool:
    """Whether the act came as far as the operation that kills it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            install(Countdown(fatal))
            act(home, name, pick)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert status == 0, f"{name} failed before it was killed: {status}"
    return False


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(killed(Path(asked["home"]), asked["act"], asked["pick"], asked["fatal"])), flush=True)


if __name__ == "__main__":
    main()
