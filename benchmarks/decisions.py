"""Measures how many decisions one head records in a minute, with answers that are there at once.

    python benchmarks/decisions.py --runs 100 --workers 4

Each decision is one run: submitted, verified, timed, decided, sealed and published, in a workspace that grows. The
answers are made up beforehand, so what is measured is the head alone: its appends, its seal and its publication.
Several processes record at once, as the workers of a cluster's places do on the head.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from forge.app.work import request_work
from forge.app.workspace import Workspace
from tests.app.prepared import benchmarked_run
from tests.cli.asking import QUICK_POLICY, create_task

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Make the runs ready, let the workers decide them, and print the rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        Workspace.create(home, origin="benchmarks/decisions.py").ledger.close()
        (home / "policy.toml").write_text(QUICK_POLICY)
        began = time.perf_counter()
        for _ in range(asked.runs):
            create_task(home)
            run_id = benchmarked_run(home)
            with Workspace.open(home) as workspace:
                request_work(workspace, workspace.find_run(run_id), "promote")
        prepared_s = time.perf_counter() - began
        command = [sys.executable, "-m", "forge", "work", "--once", "--json", "--home", str(home)]
        began = time.perf_counter()
        workers = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(asked.workers)]
        decided = sum(len(worker.communicate()[0].splitlines()) for worker in workers)
        took_s = time.perf_counter() - began
    told = {"runs": asked.runs, "workers": asked.workers, "decided": decided, "took_s": round(took_s, 1)}
    told |= {"decisions_per_minute": round(60 * decided / took_s), "recorded_before_s": round(prepared_s, 1)}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
