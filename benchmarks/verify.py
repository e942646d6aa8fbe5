"""What verifying a candidate costs, warm and cold, and where the time goes: python benchmarks/verify.py [ROUNDS].

Warm: one process judges one candidate after another, as a worker does. Cold: a new process for each. Both do the same
work on the shipped examples, turn by turn, in random order. Printed are medians of the rounds after the first.
"""

import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHAPE = {"batch": 16, "hidden_size": 4096}
EXAMPLES = ("honest_cpp", "honest_triton")


def examine_once(name: str) -> dict[str, float]:
    """Judge one example; seconds for each step of it."""
    from forge.domain.candidate import Metadata
    from forge.domain.candidate_files import REQUIRED_FILES
    from forge.domain.policy import Policy
    from forge.lab.job import Job
    from forge.lab.verification import examine
    from forge.languages import find_language
    from forge.operations import find_operation
    from forge.sandbox.isolation_here import isolation

    files = {file: (ROOT / "examples" / name / file).read_bytes() for file in REQUIRED_FILES}
    metadata = Metadata.model_validate(json.loads(files["metadata.json"]))
    job = Job(
        operation=find_operation(metadata.op),
        language=find_language(metadata.language),
        shape=SHAPE,
        held_out=({"batch": 6, "hidden_size": 1111},),
        dtype="fp32",
        policy=Policy(),
        isolation=isolation(),
        files=files,
        metadata=metadata,
        entry_point=metadata.entry_point or metadata.op,
        interpreted=metadata.language == "triton",
    )
    steps: dict[str, float] = {}
    began: tuple[float, str] = (time.perf_counter(), "start")

    def note(step: str) -> None:
        nonlocal began
        now = time.perf_counter()
        steps[began[1]] = steps.get(began[1], 0.0) + now - began[0]
        began = (now, step)

    examined = examine(job, progress=note)
    note("end")
    if examined.verdict.verdict != "accepted":
        sys.exit(f"{name} wasn't accepted: {examined.verdict}")
    return steps


def cold_s(name: str) -> float:
    """Judge one example in a process of its own."""
    began_s = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--once", name], check=True, cwd=ROOT)
    return time.perf_counter() - began_s


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    warm: dict[str, list[dict[str, float]]] = {name: [] for name in EXAMPLES}
    cold: dict[str, list[float]] = {name: [] for name in EXAMPLES}
    turns = [(name, kind) for name in EXAMPLES for kind in ("warm", "cold")]
    for _ in range(rounds + 1):
        for name, kind in random.sample(turns, len(turns)):
            if kind == "warm":
                warm[name].append(examine_once(name))
            else:
                cold[name].append(cold_s(name))
    print(f"{'':16}{'warm s':>9}{'cold s':>9}{'cold/warm':>11}{'warm a minute':>15}")
    for name in EXAMPLES:
        totals = [sum(steps.values()) for steps in warm[name][1:]]
        ratio = statistics.median(c / w for c, w in zip(cold[name][1:], totals, strict=True))
        middle = statistics.median(totals)
        print(f"{name:16}{middle:9.2f}{statistics.median(cold[name][1:]):9.2f}{ratio:11.2f}{60 / middle:15.1f}")
    for name in EXAMPLES:
        print(f"\n{name}, where the time goes (median ms)")
        for step in warm[name][-1]:
            taken = statistics.median(steps.get(step, 0.0) for steps in warm[name][1:])
            print(f"  {step:16}{taken * 1000:9.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        examine_once(sys.argv[2])
    else:
        main()
