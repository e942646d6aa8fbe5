"""How many problems of KernelBench become tasks, and how solutions fare: on a GPU, several at a time.

    python benchmarks/kernelbench.py HOME KERNELBENCH [--levels 1,2,3] [--workers 8] [--budget-s 540]
    python benchmarks/kernelbench.py HOME KERNELBENCH --solutions benchmarks/model_new
    python benchmarks/kernelbench.py HOME KERNELBENCH --most-bytes 268435456

KERNELBENCH is a folder with `level1`, `level2` and `level3`; its files aren't part of this project. HOME gets a
workspace for each worker, and `problems.jsonl` with a line for each problem: its task, or the reason why there is
none. The same command goes on where an earlier one ended. With `--solutions` the problems are those that have a file
of the same level and number there, such as `1_23.py` with a class ModelNew, and each is taken through the pipeline.
With `--most-bytes` a size of a problem is halved until its operands, weights and results take no more, as
`forge task create --constant` does it; the line of the problem names the constants.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import Any

POLICY = 'baselines = ["eager", "compile"]\nregimes = ["cold"]\n'
"""Policy of the workers' workspaces: what KernelBench itself compares with."""
Json = dict[str, Any]  # Any: a JSON document


def problems_of(root: Path, levels: list[str]) -> dict[str, Path]:
    """Return the problem files by level and number, such as `2_40`."""
    found: dict[str, Path] = {}
    for level in levels:
        for path in (root / f"level{level}").glob("*.py"):
            number = re.match(r"\d+", path.name)
            if number:
                found[f"{level}_{int(number[0])}"] = path
    return dict(sorted(found.items(), key=lambda one: tuple(map(int, one[0].split("_")))))


def frozen(
    workspace: Any, path: Path, gpu: str, dtype: str, constants: list[str]
) -> Json:  # Any: imported in the worker alone
    """Freeze one problem, or say why it can't be."""
    from forge.app.tasks.references import DeclaredTexts, freeze_reference, infer_reference
    from forge.errors import ForgeError
    from forge.pipeline.create import TaskRequest

    request = TaskRequest(op="", language="triton", gpu=gpu, dtype=dtype, shape="")
    declared = DeclaredTexts(constants=constants)
    steps: list[str] = []
    try:
        found = infer_reference(workspace, path, request, declared=declared, progress=steps.append)
        opened = freeze_reference(workspace, found)
    except ForgeError as error:
        return {"refused": type(error).__name__, "why": str(error), "at": steps[-1] if steps else ""}
    return {"task": opened.task_id, "run": opened.run_id}


def cut_to(path: str, most_bytes: int) -> Json:
    """Return a problem's bytes and the constants that make it small enough, or nothing if that can't be found."""
    script = Path(__file__).with_name("kernelbench_sizes.py")
    command = [sys.executable, str(script), path, str(most_bytes)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    return json.loads(ran.stdout) if ran.returncode == 0 else {}


def solved(workspace: Any, told: Json, solution: Path, folder: Path) -> Json:  # Any: as above
    """Take a solution of a frozen problem to its decision."""
    from forge.app.phases import phases
    from forge.app.tasks.starter import write_starter
    from forge.errors import ForgeError
    from forge.events import BenchmarkRecorded, CandidateSubmitted, CandidateVerified

    run, steps, event = told["run"], list[str](), None
    try:
        write_starter(workspace, told["task"], folder, solution=solution)
        event = phases.submit_candidate(workspace, workspace.find_run(run), folder, author="forge benchmark")
        if isinstance(event, CandidateSubmitted):
            event = phases.verify_candidate(workspace, workspace.find_run(run), progress=steps.append)
        if isinstance(event, CandidateVerified):
            event = phases.benchmark_candidate(workspace, workspace.find_run(run), progress=steps.append)
        if isinstance(event, BenchmarkRecorded):
            event = phases.promote_candidate(workspace, workspace.find_run(run))
    except ForgeError as error:
        return {"decision": type(error).__name__, "why": str(error), "at": steps[-1] if steps else ""}
    reason = getattr(event, "reason", None)
    why = reason.model_dump(mode="json") if reason is not None else getattr(event, "detail", None)
    answer: Json = {"decision": type(event).__name__, "why": why, "at": steps[-1] if steps else ""}
    speedup = getattr(event, "speedup", None)
    return answer if speedup is None else {**answer, "speedup": speedup.model_dump(mode="json")}


def work(home: Path, gpu: str, dtype: str) -> None:
    """A worker: one JSON line in, one out, until the input ends."""
    from forge.app.workspace import Workspace

    if not (home / "kernel_registry.db").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "policy.toml").write_text(POLICY)
        with Workspace.create(home, origin="forge benchmark"):
            pass
    with Workspace.open(home) as workspace:
        for line in sys.stdin:
            order = json.loads(line)
            began_s = time.monotonic()
            cut = cut_to(order["path"], order["most_bytes"]) if order["most_bytes"] else {}
            told = frozen(workspace, Path(order["path"]), gpu, dtype, cut.get("constants", [])) | cut
            if order.get("solution") and "task" in told:
                folder = home / "solutions" / f"{order['problem']}_{time.time_ns()}"
                told |= solved(workspace, told, Path(order["solution"]), folder)
            told |= {"problem": order["problem"], "file": Path(order["path"]).name}
            told["seconds"] = round(time.monotonic() - began_s, 1)
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def serve(command: list[str], queue: "Queue[Json]", take: Any, deadline: float) -> None:  # Any: a callback
    """Give one worker orders until there are none left, or no time; end it at the deadline."""
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    ending = threading.Timer(max(0.0, deadline - time.monotonic()), worker.kill)
    ending.start()
    try:
        while time.monotonic() < deadline:
            worker.stdin.write(json.dumps(queue.get_nowait()) + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
            if not answer:
                return
            take(json.loads(answer))
    except (Empty, BrokenPipeError):
        return
    finally:
        ending.cancel()
        worker.kill()


def shown(known: dict[str, Json], problems: dict[str, Path]) -> None:
    """Print how many became tasks, by level, and the reasons of the others."""
    for level in sorted({name.split("_")[0] for name in problems}):
        of_level = [known[name] for name in problems if name.startswith(f"{level}_") and name in known]
        tasks = sum("task" in one for one in of_level)
        print(f"level {level}: {tasks} tasks of {len(of_level)} tried")
    for name in problems:
        if name in known and "task" not in known[name]:
            print(f"  {name:6} {known[name]['file']}: {known[name]['why'][:240]}")
    decided = [known[name] for name in problems if "decision" in known.get(name, {})]
    for one in decided:
        came_to = json.dumps(one.get("speedup") or one["why"])
        print(f"  {one['problem']:6} {one['seconds']:6} s {one['decision']} {came_to}")
    print(dict(collections.Counter(one["decision"] for one in decided)))


def main() -> None:
    """Ask every problem that has no answer yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("root", type=Path, nargs="?")
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--budget-s", type=float, default=540)
    parser.add_argument("--solutions", type=Path)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--most-bytes", type=int, default=0)
    parser.add_argument("--work", action="store_true")
    options = parser.parse_args()
    if options.work:
        work(options.home, options.gpu, options.dtype)
        return
    if options.root is None or not (options.root / "level1").is_dir():
        parser.error("expected a folder with level1, level2 and level3")
    deadline = time.monotonic() + options.budget_s
    problems = problems_of(options.root, options.levels.split(","))
    answers = options.home / ("solutions.jsonl" if options.solutions else "problems.jsonl")
    if options.solutions:
        problems = {name: path for name, path in problems.items() if (options.solutions / f"{name}.py").is_file()}
    options.home.mkdir(parents=True, exist_ok=True)
    known = {
        one["problem"]: one for one in (map(json.loads, answers.read_text().splitlines()) if answers.exists() else ())
    }
    queue: Queue[Json] = Queue()
    for name, path in problems.items():
        if name not in known:
            solution = str(options.solutions / f"{name}.py") if options.solutions else None
            order = {"problem": name, "path": str(path), "solution": solution, "most_bytes": options.most_bytes}
            queue.put(order)

    def take(answer: Json) -> None:
        known[answer["problem"]] = answer
        with answers.open("a") as file:
            file.write(json.dumps(answer) + "\n")
        said = answer.get("decision") or answer.get("task") or answer["why"]
        print(f"{answer['seconds']:6.1f} s  {answer['problem']:6} {said[:200]}", flush=True)

    asked = ["--work", "--gpu", options.gpu, "--dtype", options.dtype]
    commands = [
        [sys.executable, os.path.abspath(__file__), str(options.home / f"worker_{number}"), *asked]
        for number in range(min(options.workers, max(1, queue.qsize())))
    ]
    threads = [threading.Thread(target=serve, args=(command, queue, take, deadline)) for command in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown(known, problems)


if __name__ == "__main__":
    main()
