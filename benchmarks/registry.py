"""Earn a registry: every shipped GPU kernel through the whole pipeline, on all GPUs of this machine at once.

    python benchmarks/registry.py HOME [--only softmax,rope@prefill] [--budget-s 540]

HOME is a workspace. Where each candidate stands is read from its ledger, so an interrupted run is continued by the
same command: what was refused or promoted is left alone, what was verified is timed, and what has no verdict for the
noise of it is timed again. Candidates are judged several to a GPU, and timed one to a GPU.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "h200"
JUDGES_PER_GPU = 3
ROWS = {"decode": "batch=16,hidden_size=4096", "prefill": "batch=4096,hidden_size=4096"}
MORE_ROWS = {**ROWS, "long": "batch=8192,hidden_size=4096"}
SHAPES: dict[str, dict[str, str]] = {
    "rmsnorm": MORE_ROWS,
    "fused_add_rmsnorm": ROWS,
    "layernorm": MORE_ROWS,
    "softmax": MORE_ROWS,
    "silu_mul": {"decode": "batch=16,hidden_size=14336", "prefill": "batch=4096,hidden_size=4096"},
    "gelu_mul": {"decode": "batch=16,hidden_size=14336", "prefill": "batch=4096,hidden_size=4096"},
    "rope": {
        "decode": "tokens=16,heads=32,half_dim=64",
        "prefill": "tokens=4096,heads=32,half_dim=64",
        "long": "tokens=8192,heads=32,half_dim=64",
    },
    "quantize_fp8": MORE_ROWS,
    "gated_rmsnorm_quant": ROWS,
    "topk_softmax": {"decode": "tokens=16,experts=128", "prefill": "tokens=4096,experts=128"},
    "cross_entropy": {
        "decode": "tokens=16,vocab_size=128256",
        "prefill": "tokens=1024,vocab_size=32000",
        "long": "tokens=2048,vocab_size=32000",
    },
    "kv_cache_append": {
        "decode": "tokens=64,slots=4096,kv_heads=8,head_dim=128",
        "prefill": "tokens=2048,slots=4096,kv_heads=8,head_dim=128",
    },
    "dequant_int8": ROWS,
    "dequant_int4": {"decode": "batch=16,pairs=2048", "prefill": "batch=4096,pairs=2048"},
}
"""Shapes of 8B language models: 16 rows of a decode step, 4096 of a prompt and, for some, 8192 of a long one;
vocabularies of Llama 3 and Llama 2."""
PASSES = tuple((dtype, name) for dtype in ("bf16", "fp16") for name in ("prefill", "decode", "long"))


@dataclass(frozen=True)
class Item:
    """One candidate for one task."""

    folder: str
    op: str
    language: str
    dtype: str
    shape: str

    @property
    def label(self) -> str:
        """One line on a terminal."""
        return f"{self.language} {self.op} {self.dtype} {self.shape}"


def named(option: str) -> set[str]:
    """Operations, folders, or folders at a shape's name, of one type or both: `rmsnorm_cuda`, `rope@long@fp16`."""
    return {one for one in option.split(",") if one}


def items(only: set[str]) -> Iterator[Item]:
    """Every shipped kernel at every shape and type; those in CUDA C++ at the prompts' shapes in bf16."""
    for dtype, name in PASSES:
        for op, shape in ((op, shapes[name]) for op, shapes in SHAPES.items() if name in shapes):
            folders = [(op, "triton")]
            if dtype == "bf16" and name != "decode" and (EXAMPLES / f"{op}_cuda").is_dir():
                folders.append((f"{op}_cuda", "cuda"))
            for folder, language in folders:
                if not only or {op, folder, f"{folder}@{name}", f"{folder}@{name}@{dtype}"} & only:
                    yield Item(folder, op, language, dtype, ",".join(sorted(shape.split(","))))


@dataclass(frozen=True)
class Standing:
    """Where a candidate's latest run stands."""

    run_id: str
    decided: bool
    """Nothing is left to be done."""
    verified: bool


def standings(home: Path) -> dict[Item, Standing]:
    """Each of our candidates with its latest run, as the ledger tells."""
    from forge.app.workspace import Workspace
    from forge.domain.verdict import UNDECIDED

    found: dict[Item, Standing] = {}
    with Workspace.open(home) as workspace:
        for run in workspace.run_states().runs.values():
            if run.task is None or run.submitted is None:
                continue
            task = run.task.event.task
            shape = ",".join(sorted(f"{axis}={size}" for axis, size in task.shape.items()))
            folder = task.op if task.language == "triton" else f"{task.op}_{task.language}"
            undecided = run.failure is not None and run.failure.event.reason.code in UNDECIDED
            ended = (
                run.promotion is not None or run.rejection is not None or (run.failure is not None and not undecided)
            )
            standing = Standing(run.run_id, decided=ended, verified=run.verified is not None)
            found[Item(folder, task.op, task.language, task.dtype, shape)] = standing
    return found


def work(home: Path) -> None:
    """A worker: one JSON line in, one out, until the input ends. Its GPU is the one that it is shown."""
    from forge.app.phases import bench, promote_candidate, submit, verify_candidate
    from forge.app.tasks import create_task
    from forge.app.workspace import Workspace
    from forge.errors import ForgeError
    from forge.pipeline.create import TaskRequest

    def quiet(_: str) -> None:
        pass

    with Workspace.open(home) as workspace:
        for line in sys.stdin:
            order = json.loads(line)
            item = Item(**order["item"])
            told: dict[str, object] = {"item": order["item"], "phase": order["phase"]}
            started = time.monotonic()
            try:
                if order["phase"] == "verify":
                    request = TaskRequest(
                        op=item.op, language=item.language, gpu="h200", dtype=item.dtype, shape=item.shape
                    )
                    run_id = create_task(workspace, request).run_id
                    submit(workspace, workspace.find_run(run_id), EXAMPLES / item.folder, author="forge")
                    event = verify_candidate(
                        workspace, workspace.find_run(run_id), progress=quiet, again=order["again"]
                    )
                    told["run_id"] = run_id
                else:
                    run_id = order["run_id"]
                    event = bench(workspace, workspace.find_run(run_id), progress=quiet)
                    if type(event).__name__ == "BenchmarkRecorded":
                        event = promote_candidate(workspace, workspace.find_run(run_id))
                told["event"] = type(event).__name__
                told["detail"] = event.model_dump(mode="json")
            except ForgeError as error:
                told["event"], told["detail"] = type(error).__name__, {"message": str(error)}
            told["seconds"] = time.monotonic() - started
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


class Worker:
    """A worker process on one GPU."""

    def __init__(self, home: Path, gpu: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(home), "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu},
        )

    def ask(self, order: dict[str, object]) -> dict[str, object]:
        """Have one phase done; raise EOFError if the worker is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise EOFError("a worker ended")
        told: dict[str, object] = json.loads(answer)
        return told

    def close(self) -> None:
        """End it when it has nothing to do."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


def run_phase(workers: list[Worker], orders: list[dict[str, object]], deadline: float) -> None:
    """Give every worker orders until there are none left, or no time."""
    queue: Queue[dict[str, object]] = Queue()
    for order in orders:
        queue.put(order)

    def serve(worker: Worker) -> None:
        while time.monotonic() < deadline:
            try:
                answer = worker.ask(queue.get_nowait())
            except (Empty, EOFError):
                return
            print(line_of(answer), flush=True)

    threads = [threading.Thread(target=serve, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def line_of(told: dict[str, object]) -> str:
    """What one phase came to."""
    item, detail = Item(**told["item"]), told["detail"]  # type: ignore[arg-type]  # our own lines
    assert isinstance(detail, dict)
    reason = detail.get("reason") or {}
    said = reason.get("message", "") if isinstance(reason, dict) else str(reason)
    if told["event"] == "KernelPromoted":
        said = f"{detail['speedup']['ratio']:.2f}x over {detail['baseline']}: {detail['kernel_id']}"
    said = said or str(detail.get("message", detail.get("detail", "")))
    return f"{told['seconds']:6.1f} s  {told['phase']:6} {told['event']:20} {item.label}  {said[:220]}"


def gpus() -> list[str]:
    """UUIDs of all GPUs."""
    from forge.platforms.cuda import devices

    return [device.uuid for device in devices()]


def main() -> None:
    """Verify everything, then time everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--budget-s", type=float, default=1e9)
    parser.add_argument("--gpus", default="", help="indices, of all by default")
    parser.add_argument("--again", default="", help="what to judge anew, decided or not; named as in --only")
    parser.add_argument("--work", action="store_true")
    options = parser.parse_args()
    if options.work:
        work(options.home)
        return
    deadline = time.monotonic() + options.budget_s
    chosen = {int(one) for one in options.gpus.split(",") if one}
    found = [uuid for index, uuid in enumerate(gpus()) if not chosen or index in chosen]
    if not found:
        sys.exit("this needs a GPU: nvidia-smi lists none, or none of those asked for")
    for one in named(options.only) | named(options.again):
        if not list(items({one})):
            parser.error(f"{one!r} names no candidate: expected an operation or a folder, with @decode or so")
    wanted = list(items(named(options.only)))
    anew = set(items(named(options.again))) if options.again else set()
    stood = {item: standing for item, standing in standings(options.home).items() if item not in anew}
    fresh = [item for item in wanted if item not in stood or not (stood[item].decided or stood[item].verified)]
    orders: list[dict[str, object]] = [
        {"phase": "verify", "item": asdict(item), "again": item in anew} for item in fresh
    ]
    run_on(options.home, found, JUDGES_PER_GPU, orders, deadline)
    stood = standings(options.home)
    untimed = [item for item in wanted if item in stood and stood[item].verified and not stood[item].decided]
    orders = [{"phase": "bench", "item": asdict(item), "run_id": stood[item].run_id} for item in untimed]
    run_on(options.home, found, 1, orders, deadline)


def run_on(home: Path, gpus: list[str], each: int, orders: list[dict[str, object]], deadline: float) -> None:
    """One phase over all orders, by so many workers on each GPU."""
    workers = [Worker(home, gpu) for gpu in gpus for _ in range(each)] if orders else []
    run_phase(workers, orders, deadline)
    for worker in workers:
        worker.close()


if __name__ == "__main__":
    main()
