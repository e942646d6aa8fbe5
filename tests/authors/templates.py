"""A small template, and a session that runs it without a machine."""

import json
from collections.abc import Callable, Sequence

import orjson

from forge.authors.search.author import SearchAuthor
from forge.authors.search.template import Template, parse_template
from forge.domain.authoring import (
    BudgetLeft,
    Draft,
    Finished,
    Judged,
    LogEntry,
    Screen,
    Screened,
    Step,
    Submit,
    Trial,
)
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.verdict import Accepted

KERNEL = '''"""A kernel."""
BLOCK = 64
WARPS: int = 4
FAST = True
SHARE = 0.5
ORDER = "rows"
TWICE = 1
TWICE = 2
BELOW = -3
CPP_SOURCE = r"""
#define UNROLL 2
static constexpr int TILE = 16;  // columns
constexpr bool STREAM = false;
"""
'''
METADATA = {"name": "one", "op": "softmax", "language": "cpp", "author": "a", "cpp": {"source": "CPP_SOURCE"}}
FILES = dict.fromkeys(REQUIRED_FILES, b"x = 1\n") | {
    "kernel.py": KERNEL.encode(),
    "metadata.json": json.dumps(METADATA).encode(),
}


def template(parameters: dict[str, list[object]], constraints: Sequence[str] = ()) -> Template:
    space = {
        "parameters": [{"name": name, "values": values} for name, values in parameters.items()],
        "constraints": list(constraints),
    }
    return parse_template(FILES, orjson.dumps(space))


WIDE = {
    "BLOCK": [2**power for power in range(4, 12)],
    "WARPS": [1, 2, 4, 8],
    "TILE": [4, 8, 16, 32],
    "UNROLL": [1, 2, 4],
}
Clock = Callable[[Draft, bool], Trial]


def run(
    author: SearchAuthor, seed: int, clock: Clock, left: BudgetLeft | None = None
) -> tuple[list[Step], list[LogEntry]]:
    """Carry out an author's steps with a clock of our own, until it has finished."""
    steps: list[Step] = []
    log: list[LogEntry] = []
    while not steps or not isinstance(steps[-1], Finished):
        step = author.propose(seed, log, left or BudgetLeft())
        steps.append(step)
        match step:
            case Screen():
                trials = tuple(clock(draft, step.final) for draft in step.drafts)
                log.append(Screened(reference=step.reference.sha256, trials=trials, final=step.final))
            case Submit():
                log += [Judged(draft=one.sha256, candidate="c" * 64, verdict=Accepted()) for one in step.drafts]
    return steps, log
