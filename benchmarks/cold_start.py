"""What a cold start costs, against a bare interpreter, side by side: python benchmarks/cold_start.py [ROUNDS].

Each round starts every command once, in random order. Printed are medians, and for each command the median over
rounds of its ratio to, and its difference from, the bare start of the same round.
"""

import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = ("torch", "numpy", "sqlmodel", "sqlalchemy", "pydantic", "typer")
COMMANDS = {
    "bare": ["-c", "pass"],
    "import forge.lookup": ["-c", "import forge.lookup"],
    "forge --help": ["-m", "forge", "--help"],
    "forge task create --help": ["-m", "forge", "task", "create", "--help"],
    "import sqlmodel": ["-c", "import sqlmodel"],
}


def milliseconds(arguments: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for arguments in COMMANDS.values():  # compiles what isn't compiled yet
        milliseconds(arguments, environment)
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            samples[name].append(milliseconds(COMMANDS[name], environment))
    print(f"{'':28}{'median ms':>10}{'x bare':>9}{'+ ms':>9}")
    for name, taken in samples.items():
        pairs = list(zip(taken, samples["bare"], strict=True))
        ratio = statistics.median(t / b for t, b in pairs)
        above = statistics.median(t - b for t, b in pairs)
        print(f"{name:28}{statistics.median(taken):10.1f}{ratio:9.2f}{above:9.1f}")
    code = f"import sys, forge.lookup; print([m for m in {FORBIDDEN!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True)
    print(f"after import forge.lookup, of {', '.join(FORBIDDEN)}: {found.stdout.strip()}")


if __name__ == "__main__":
    main()
