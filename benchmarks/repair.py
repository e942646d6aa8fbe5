"""What feedback is worth: python benchmarks/repair.py [MUTANTS] [--json].

A mechanical repairer gets a C++ kernel with one wrong edit. It knows a table of edits (swap an operator, a constant,
a name; add or remove a semicolon) and tries them one at a time, each try judged by the real gates, until one passes.
Both ways take the same random order. With pass or fail alone, each edit is a round. With the feedback document, an
edit is handed in only if the program of every counterexample so far prints what it expects. If the compiler failed,
edits on the lines that its log names come first.

A try that a direct call of the built text already shows to be wrong counts as a refused round without the gates, in
the order without feedback only: the gates compare the same outputs more strictly, so they'd refuse it as well.
"""

import argparse
import hashlib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median

import torch

from forge.app.check.check import CheckRequest, check
from forge.app.sessions.feedback import log_lines, shown_counterexample
from forge.authors.document import feedback_document
from forge.domain.authoring import BudgetLeft, Judged
from forge.domain.digest import sha256
from forge.domain.feedback import Feedback, FeedbackDocument, ShownCounterexample

ROOT = Path(__file__).resolve().parent.parent
KERNEL = (ROOT / "examples" / "honest_cpp" / "kernel.py").read_text()
SHAPE = "batch=4,hidden_size=256"
SEED = 20261125
MUTANTS = 40
SWAPS: tuple[tuple[str, str], ...] = (
    *(("+", "-"), ("-", "+"), ("*", "/"), ("/", "*"), ("<", "<="), ("<=", "<"), ("+=", "-="), ("-=", "+=")),
    *(("0.0f", "1.0f"), ("1.0f", "0.0f"), ("1.0f", "2.0f"), ("2.0f", "1.0f"), ("= 0", "= 1"), ("= 1", "= 0")),
    *(("std::sqrt(", "("), ("[i]", "[0]"), ("[0]", "[i]"), ("width", "rows"), ("rows", "width"), ("h * h", "h")),
    *(("x[i]", "residual[i]"), ("residual[i]", "x[i]"), ("weight[i]", "scale"), ("h;", "h * h;"), (";", "")),
)
"""Edits of one place: a text and what takes its place."""


@dataclass(frozen=True)
class Edit:
    """One edit at one place of the C++ text."""

    at: int
    old: str
    new: str
    line: str

    def applied(self, kernel: str) -> str:
        return kernel[: self.at] + self.new + kernel[self.at + len(self.old) :]


def edits(kernel: str) -> list[Edit]:
    """Every edit of the table at every place of the C++ text that computes, with inserted texts last."""
    begin, end = kernel.index("float sum"), kernel.index('"""\n\n_library')
    found = []
    for old, new in SWAPS:
        for match in re.finditer(
            rf"(?<![+\-*/<=&|.\w]){re.escape(old)}(?![+=<\w>])" if old.isascii() else "", kernel
        ):
            found.append(Edit(match.start(), old, new, line_at(kernel, match.start())))  # noqa: PERF401
    missing = re.finditer(r"(?<![{};,\n])\n", kernel)
    found += [Edit(one.start(), "\n", ";\n", line_at(kernel, one.start())) for one in missing]
    return [one for one in found if begin <= one.at < end]


def line_at(kernel: str, at: int) -> str:
    return kernel[kernel.rfind("\n", 0, at) + 1 : kernel.find("\n", at)].strip()


@cache
def judged(kernel: str) -> FeedbackDocument:
    """What the real gates say of a kernel, as every author is told it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(kernel)
        request = CheckRequest(kernel=path, op="fused_add_rmsnorm", shape=SHAPE, language="cpp", gpu="cpu")
        checked = check(request, progress=lambda _: None)
    wrong = checked.examined.counterexample
    feedback = Feedback(
        gate=checked.examined.gates[-1].name if checked.examined.gates else None,
        counterexample=None if wrong is None else shown_counterexample(wrong.model_dump(mode="json")),
        build_log=log_lines(
            None if checked.log is None else checked.log.document(),
            None if checked.mend is None else checked.mend.document(),
        ),
    )
    digest = sha256(kernel.encode())
    entry = Judged(draft=digest, candidate=digest, verdict=checked.examined.verdict, feedback=feedback)
    return feedback_document([entry], BudgetLeft(), hypotheses={})


@cache
def is_plainly_wrong(kernel: str) -> bool:
    """Whether a direct build fails, or one call in a process of its own gives another answer than the reference."""
    source = kernel.split('r"""')[1].split('"""', maxsplit=1)[0]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "k.cpp").write_text(source)
        built = Path(folder) / "k.so"
        made = subprocess.run(
            ["g++", "-O0", "-w", "-shared", "-fPIC", "-std=c++17", "-o", str(built), str(Path(folder) / "k.cpp")],
            capture_output=True,
            check=False,
        )
        if made.returncode:
            return True
        called = subprocess.run(
            [sys.executable, "-I", "-S", "-c", CALL, str(built)], capture_output=True, check=False
        )
        return called.returncode != 0


CALL = """
import ctypes, math, random, sys
rows, width, eps = 4, 256, 1e-5
rng = random.Random(1)
def drawn(count):
    return [rng.gauss(0, 1) for _ in range(count)]
x, residual, weight = drawn(rows * width), drawn(rows * width), drawn(width)
def made(values):
    return (ctypes.c_float * 8192)(*values)
given = [made(x), made(residual), made(weight), made([]), made([])]
function = ctypes.CDLL(sys.argv[1]).fused_add_rmsnorm
function.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
function(*map(ctypes.addressof, given), rows, width, eps)
h = [a + b for a, b in zip(x, residual)]
for row in range(rows):
    mine = h[row * width : (row + 1) * width]
    scale = 1 / math.sqrt(sum(one * one for one in mine) / width + eps)
    for column, one in enumerate(mine):
        at = row * width + column
        wanted = (one * scale * weight[column], one)
        if not all(abs(given[3 + n][at] - want) <= 1e-2 + 1e-2 * abs(want) for n, want in enumerate(wanted)):
            sys.exit(1)
"""
"""Program that makes one call of a built kernel and exits with 1 if the answer is far from the formula."""


def answers_right(kernel: str, known: Sequence[ShownCounterexample]) -> bool:
    """Whether a kernel, built here, gives what each counterexample's program expects."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.py").write_text(kernel)
        (Path(folder) / "k.cpp").write_text(kernel.split('r"""')[1].split('"""', maxsplit=1)[0])
        built = ["g++", "-O0", "-w", "-shared", "-fPIC", "-std=c++17", "-o", "libkernel.so", "k.cpp"]
        if subprocess.run(built, cwd=folder, capture_output=True, check=False).returncode:
            return False
        return all(holds(folder, one) for one in known)


def holds(folder: str, known: ShownCounterexample) -> bool:
    """Run a counterexample's program beside a kernel in a process of its own; whether it prints what it expects."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os.dup2(write_end, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.path.insert(0, folder)
        torch.set_num_threads(1)
        torch.set_printoptions(precision=9)
        sys.stdout = os.fdopen(1, "w")
        try:
            exec(compile(known.snippet or "", "snippet", "exec"), {})
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    found = re.match(r"(?:tensor\()?([^\s)]+)\)? expected (\S+)", said)
    if found is None:
        return False
    got, expected = number(found[1]), number(found[2])
    return abs(got - expected) <= max(10 * number(known.allowed_error), 1e-6 * abs(expected))


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def is_near(edit: Edit, kernel: str, log: Sequence[str]) -> bool:
    """Whether a compiler's log names the line of an edit, or the one behind it."""
    behind = line_at(kernel, kernel.find("\n", edit.at + (edit.old != "\n")) + 1)
    return any(line and line in said for line in (edit.line, behind) for said in log)


def blind(kernel: str, rng: random.Random) -> int:
    """Number of rounds with pass or fail alone."""
    order = edits(kernel)
    rng.shuffle(order)
    for rounds, edit in enumerate(order, 1):
        tried = edit.applied(kernel)
        if not is_plainly_wrong(tried) and judged(tried).verdict == "accepted":
            return rounds
    return len(order)


def told(kernel: str, rng: random.Random) -> int:
    """Number of rounds with the feedback document: every counterexample so far holds for what is handed in."""
    order = edits(kernel)
    rng.shuffle(order)
    first = judged(kernel)
    documents, rounds = [first], 0
    if first.reason is not None and first.reason.code == "COMPILE_ERROR":
        order.sort(key=lambda edit: not is_near(edit, kernel, first.build_log))
    for edit in order:
        tried = edit.applied(kernel)
        found = [one.counterexample for one in documents if one.counterexample is not None]
        known = list({one.snippet: one for one in found if one.snippet is not None}.values())
        if known and not answers_right(tried, known):
            continue
        rounds += 1
        documents.append(judged(tried))
        if documents[-1].verdict == "accepted":
            return rounds
    return rounds + len(order)


def mutants(count: int, rng: random.Random) -> Iterator[tuple[Edit, str]]:
    """Yield wrong kernels of one edit each, whose inverse is in the table, in random order."""
    found, every = 0, edits(KERNEL)
    rng.shuffle(every)
    for edit in every:
        wrong = edit.applied(KERNEL)
        if not any(one.applied(wrong) == KERNEL for one in edits(wrong)):
            continue
        if judged(wrong).verdict == "rejected":
            found += 1
            yield edit, wrong
        if found == count:
            return


def measured(count: int) -> dict[str, object]:
    """Rounds with and without feedback for each mutant."""
    began, rows = time.monotonic(), []
    for place, (edit, wrong) in enumerate(mutants(count, random.Random(SEED))):
        document = judged(wrong)
        rows.append(
            {
                "edit": f"{edit.old!r} -> {edit.new!r} in {edit.line!r}",
                "reason": None if document.reason is None else document.reason.code,
                "edits": len(edits(wrong)),
                "with_feedback": told(wrong, random.Random(f"{SEED}:{place}")),
                "blind": blind(wrong, random.Random(f"{SEED}:{place}")),
            }
        )
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return {
        "mutants": len(rows),
        "kernel_sha256": hashlib.sha256(KERNEL.encode()).hexdigest(),
        **{f"mean_{name}": mean(int(str(one[name])) for one in rows) for name in ("with_feedback", "blind")},
        **{f"median_{name}": median(int(str(one[name])) for one in rows) for name in ("with_feedback", "blind")},
        "seconds": round(time.monotonic() - began),
        "rows": rows,
    }


def shown(found: Mapping[str, object]) -> str:
    return (
        f"{found['mutants']} mutants: {found['mean_with_feedback']:.1f} rounds with feedback, "
        f"{found['mean_blind']:.1f} with pass or fail alone"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mutants", nargs="?", type=int, default=MUTANTS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.mutants)
    print(json.dumps(found, indent=1) if given.json else shown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
