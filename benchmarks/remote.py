"""Measures what a job costs beyond the local executor when another process answers it, in milliseconds.

    python benchmarks/remote.py

The job is a candidate whose sources are refused, so that almost nothing but the way is measured; the candidate's
files are padded to the size that a built candidate has. Both sides are asked in turns.
"""

import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from forge.domain.policy import Policy
from forge.executor import Executor
from forge.executor.local import LocalExecutor
from forge.executor.remote.executor import RemoteExecutor
from forge.executor.remote.ssh import SshConnection
from forge.lab.job import Job

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.candidates import job_for

ROUNDS = 40
PADDING = b"#" * 2_000_000
"""Comment of two megabytes, about what a built candidate and its launch plan have."""


def took_ms(executor: Executor, job: Job) -> float:
    """Return how long one job took, in milliseconds."""
    began = time.perf_counter()
    executor.examine_build(job, progress=lambda _: None)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Ask both executors in turns and print the medians."""
    asked = job_for("def other():\n    pass\n", language="torch")
    asked = replace(asked, files={**asked.files, "reference.py": PADDING})
    local = LocalExecutor(Path(tempfile.gettempdir()) / "forge-remote.lock")
    connection = SshConnection("ssh://here", (sys.executable, "-m", "forge", "work", "answer"))
    remote = RemoteExecutor(connection)
    remote.site(Policy())
    times: dict[str, list[float]] = {"local": [], "remote": []}
    for _ in range(ROUNDS):
        times["local"].append(took_ms(local, asked))
        times["remote"].append(took_ms(remote, asked))
    connection.close()
    medians = {side: round(statistics.median(values), 2) for side, values in times.items()}
    print(json.dumps({**medians, "beyond_local": round(medians["remote"] - medians["local"], 2)}))


if __name__ == "__main__":
    main()
