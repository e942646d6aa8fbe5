"""Shows what a second GPU is worth: benchmarks/workers.py --devices 0,1.

Shipped kernels are judged twice, each time in a new workspace: by one worker on the first GPU, and by one worker on
each GPU. The document has both times, their ratio, and the A/A control of each benchmark: the eager baseline against
another process of itself, which should read 1 also while the other GPU works. With --cpu it serves the processor and
a C++ example, to try the program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ROWS = "batch=4096,hidden_size=4096"


def forge(home: Path, *words: str) -> list[dict[str, object]]:
    """Run a command; return its documents. What it says goes to the error output."""
    ran = subprocess.run(
        [sys.executable, "-m", "forge", *words, "--json"],
        env={**os.environ, "FORGE_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"forge {' '.join(words)} ended with {ran.returncode}: {ran.stdout[-2000:]}")
    decoder, text, found = json.JSONDecoder(), ran.stdout.strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].strip()
    return found


def handed_in(home: Path, ops: list[str], gpu: str, until: str) -> None:
    """Open a run for each operation, hand its shipped kernel in, and ask workers for it."""
    forge(home, "init", str(home))
    cpu = gpu == "cpu"
    for op in ops:
        task = (
            "--op",
            op,
            "--language",
            "cpp" if cpu else "triton",
            "--gpu",
            gpu,
            "--dtype",
            "fp32" if cpu else "bf16",
        )
        created = forge(home, "task", "create", *task, "--shape", "batch=64,hidden_size=1024" if cpu else ROWS)
        folder = EXAMPLES / "templates" / f"cpp_{op}" if cpu else EXAMPLES / "h200" / op
        run_id = str(created[0]["run_id"])
        forge(home, "submit", run_id, str(folder))
        forge(home, "work", "request", run_id, "--until", until)


def served(home: Path, devices: list[str]) -> dict[str, object]:
    """Let workers judge everything; return the time and how each run ended."""
    began = time.monotonic()
    ended = forge(home, "work", "--once", *(word for one in devices for word in ("--device", one)))
    took_s = time.monotonic() - began
    return {"devices": devices, "took_s": took_s, "runs": [outcome(home, one) for one in ended]}


def outcome(home: Path, ended: dict[str, object]) -> dict[str, object]:
    """Return how a run ended, and the A/A controls of its benchmark with their intervals."""
    from forge.app.workspace import Workspace

    with Workspace.open(home) as workspace:
        run = workspace.find_run(str(ended["run_id"]))
    timed = run.benchmark or run.failure
    workloads = timed.event.workloads if timed else ()
    told = {key: ended[key] for key in ("run_id", "state", "reason", "error", "kernel_id")}
    return told | {"controls": [one.control.model_dump(mode="json") for one in workloads]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--devices", default="0,1", help="the GPUs, by nvidia-smi's index")
    options.add_argument("--gpu", default="h200", help="the GPUs' name")
    options.add_argument("--ops", default="softmax,layernorm")
    options.add_argument("--until", default="promote", help="last phase: verify, bench or promote")
    options.add_argument("--cpu", action="store_true")
    options.add_argument("--out", type=Path, help="file for the document, besides the output")
    asked = options.parse_args()
    gpu, devices = ("cpu", []) if asked.cpu else (asked.gpu, asked.devices.split(","))
    answer: dict[str, object] = {"gpu": gpu, "ops": asked.ops}
    took = []
    for chosen in (devices[:1], devices):
        with tempfile.TemporaryDirectory(prefix="forge-workers-") as folder:
            home = Path(folder) / "home"
            handed_in(home, asked.ops.split(","), gpu, asked.until)
            found = served(home, chosen)
        took.append(float(str(found["took_s"])))
        answer["one" if len(took) == 1 else "all"] = found
        print(json.dumps(found), file=sys.stderr)
        if asked.out:
            asked.out.write_text(json.dumps(answer))
    answer["ratio"] = took[0] / took[1]
    if asked.out:
        asked.out.write_text(json.dumps(answer))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
