"""What commands that need no lab cost, in processor time: python benchmarks/commands.py [ROUNDS] [--home HOME].

Each round starts every command once, in random order, in a workspace (by default the registry that ships) that it
only reads. Printed is the least processor time of a command with its children: other work on the machine changes it
less than the time by the clock.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

REFUSED = 1
"""Exit status of a command whose answer is that nothing was found, or that something is wrong."""
ROOT = Path(__file__).resolve().parent.parent
KERNEL = "triton_cross_entropy_h200_bf16_tokens1024_vocabsize32000_v3"
SLOT = ["--op", "cross_entropy", "--gpu", "h200", "--dtype", "bf16"]
SHAPE = ["--shape", "tokens=1024,vocab_size=32000"]
BESIDE = ["--shape", "tokens=17,vocab_size=32000"]
"""Shape for which no kernel answers."""
RUN, OTHER_RUN = "20261125T084745_topk_per_row_h200_9bb815", "20261125T084745_quantize_fp8_per_tensor_h200_588acd"
"""Sealed runs."""
TASK = "triton_softmax_h200_bf16_b16_h4096_0fa462bc"
COMMANDS = (
    *(["--help"], ["task", "create", "--help"], ["explain", "RUN_NOT_FOUND"], ["completion", "bash"]),
    *(
        ["lookup", *SLOT, *SHAPE],
        ["lookup", *SLOT, *SHAPE, "--nearest"],
        ["lookup", *SLOT, *BESIDE],
        ["recommend", "--model", "llama3.1-8b"],
    ),
    *(["run", "list"], ["run", "list", "--json"], ["run", "show", RUN], ["run", "show", RUN, "--log"]),
    *(["run", "diff", RUN, OTHER_RUN], ["run", "check", RUN], ["plan", RUN], ["prompt", RUN]),
    *(["task", "list"], ["task", "list", "--json"], ["task", "show", TASK]),
    *(["kernel", one, KERNEL] for one in ("show", "history", "claims")),
    *(["kernel", "list"], ["op", "list"], ["op", "show", "softmax"], ["notes", "softmax"]),
    *(["skill", "list"], ["skill", "search", "softmax"], ["skill", "show", "op.softmax"], ["lesson", "list"]),
    *(["ledger", "log"], ["ledger", "log", "--last", "20"], ["ledger", "verify"], ["ledger", "imported"]),
    *(["ledger", "prove", KERNEL], ["ledger", "key", "show"], ["claims", "check", str(ROOT / "README.md")]),
    *(["audit", one] for one in ("leaderboard", "fast-p", "rejections", "claims", "effectiveness")),
    *(["audit", one] for one in ("experiments", "regressions", "doubts", "invalidated", "replication", "stale")),
    *(
        ["audit", "roofline", "--gpu", "h200"],
        ["audit", "why", KERNEL],
        ["audit", "history", KERNEL],
        ["audit", "views"],
        ["audit", "sql", "SELECT 1"],
    ),
    *(["token", "list"], ["agent", "list"], ["agent", "pack", "cpu"], ["work", "list"]),
)


def milliseconds(arguments: list[str], environment: dict[str, str], folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, check=False, env=environment, cwd=folder, capture_output=True, text=True)
    if ended.returncode not in (0, REFUSED):
        raise SystemExit(f"{arguments} ended with {ended.returncode}: {ended.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("--home", default=str(ROOT))
    asked = parser.parse_args()
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"FORGE_HOME": asked.home}
    starts = {"bare interpreter": ["-c", "pass"]} | {" ".join(one): ["-m", "forge", *one] for one in COMMANDS}
    taken: dict[str, list[float]] = {name: [] for name in starts}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(asked.rounds + 1):  # the first round compiles what isn't compiled yet
            for name in random.sample(list(starts), len(starts)):
                taken[name].append(milliseconds(starts[name], environment, folder))
    for name, times in sorted(taken.items(), key=lambda one: min(one[1])):
        print(f"{min(times):8.0f} ms  {name}")


if __name__ == "__main__":
    main()
