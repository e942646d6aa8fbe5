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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNEL = "triton_softmax_h200_bf16_b4096_h4096_v1"
SLOT = ["--op", "softmax", "--gpu", "h200", "--dtype", "bf16", "--shape", "batch=4096,hidden_size=4096"]
COMMANDS = (
    *(["--help"], ["task", "create", "--help"], ["explain", "RUN_NOT_FOUND"]),
    *(["lookup", *SLOT], ["lookup", *SLOT, "--nearest"], ["recommend", "--model", "llama3.1-8b"]),
    *(["run", "list"], ["run", "show", "last"], ["run", "show", "last", "--log"], ["run", "diff", "last", "last-1"]),
    *(["task", "list"], ["kernel", "list"], ["kernel", "show", KERNEL], ["kernel", "claims", KERNEL]),
    *(["op", "list"], ["skill", "list"], ["skill", "search", "softmax"], ["notes", "softmax"]),
    *(["ledger", "log", "--last", "20"], ["ledger", "verify"], ["audit", "leaderboard"], ["audit", "why", KERNEL]),
    *(["token", "list"], ["agent", "list"], ["agent", "pack", "cpu"], ["work", "list"], ["doctor"]),
)


def milliseconds(arguments: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True)
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
    for _ in range(asked.rounds + 1):  # the first round compiles what isn't compiled yet
        for name in random.sample(list(starts), len(starts)):
            taken[name].append(milliseconds(starts[name], environment))
    for name, times in sorted(taken.items(), key=lambda one: min(one[1])):
        print(f"{min(times):8.0f} ms  {name}")


if __name__ == "__main__":
    main()
