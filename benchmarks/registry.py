"""Earn a registry: every shipped GPU kernel through the whole pipeline, on all GPUs of this machine at once.

    python benchmarks/registry.py HOME [--only softmax,rope@prefill] [--budget-s 540]
    python benchmarks/registry.py HOME --judge-on 3 [--end-s 570]
    python benchmarks/registry.py HOME --replicate

HOME is a workspace. Where each candidate stands is read from its ledger, so an interrupted run is continued by the
same command: what was refused or promoted under the workspace's policy is left alone, what was verified is timed, and
what has no verdict for the noise of it is timed again. A kernel whose measurement a second one contradicts, or whose
protocol is superseded, is judged and timed in a new run. Slots that the ledger once promoted come first, then those
of an engine's heaviest operations. Candidates are judged several to a GPU, and timed one to a GPU. With `--judge-on`
some GPUs judge while the others time what was judged. With `--replicate` every kernel on offer that was measured once
is measured again; with `--judge-on` too, that comes first.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, PriorityQueue, Queue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge.domain.task import Task
    from forge.events import KernelPromoted, Recorded
    from forge.projections.standing import Standing as KernelStanding

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "h200"
JUDGES_PER_GPU = 8
POLICY = 'baselines = ["eager", "compile", "vendor", "contenders"]\nrequired_contenders = ["liger"]\n'
"""Policy of a registry that has none yet: every installed contender is measured too."""
ROWS = {"decode": "batch=16,hidden_size=4096", "prefill": "batch=4096,hidden_size=4096"}
MORE_ROWS = {**ROWS, "long": "batch=8192,hidden_size=4096"}
PRODUCTS = {"decode": "m=16,k=4096,n=4096", "prefill": "m=4096,k=4096,n=4096"}
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
    "geglu_tanh": {"decode": "batch=16,hidden_size=14336", "prefill": "batch=4096,hidden_size=4096"},
    "rmsnorm_strided": ROWS,
    "quantize_fp8_per_tensor": ROWS,
    "topk_per_row": {"decode": "batch=16,vocab_size=128256", "prefill": "batch=4096,vocab_size=4096"},
    "moe_fused_gate": {"decode": "tokens=16,experts=256", "prefill": "tokens=4096,experts=256"},
    "sampling": {"decode": "batch=16,vocab_size=128256"},
    "matmul": {"one": "m=1,k=4096,n=4096", **PRODUCTS},
    "matmul_bias_act": PRODUCTS,
    "matmul_fp8": PRODUCTS,
    "grouped_matmul": {
        "decode": "tokens=64,k=2048,n=1024,groups=8",
        "prefill": "tokens=4096,k=2048,n=768,groups=16",
    },
    "attention_decode": {"decode": "tokens=8,kv_len=4096,kv_heads=8,group=4,head_dim=128"},
    "attention_prefill": {"prefill": "tokens=2048,kv_len=2048,kv_heads=8,group=4,head_dim=128"},
}
"""Shapes of 8B language models: 16 rows of a decode step, 4096 of a prompt and, for some, 8192 of a long one;
vocabularies of Llama 3 and Llama 2."""
HEAVIEST = frozenset(list(SHAPES)[list(SHAPES).index("geglu_tanh") :])
"""Operations in which an engine spends its time, and those that libraries ship beside them."""
FP8_OPERANDS = frozenset({"matmul_fp8"})
"""Operations that have one type of result, whatever their operands are."""
PASSES = tuple((dtype, name) for dtype in ("bf16", "fp16") for name in ("prefill", "decode", "long", "one"))


TO_MEASURE_ANEW = ("evidence_stale", "not_replicated")
"""Statuses of promoted kernels that another run can bring back."""
Order = dict[str, object]
"""What a worker is asked: a phase, and the candidate or kernel it is for."""


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
                if not (EXAMPLES / folder).is_dir() or (op in FP8_OPERANDS and dtype != "bf16"):
                    continue
                if not only or {op, folder, f"{folder}@{name}", f"{folder}@{name}@{dtype}"} & only:
                    yield Item(folder, op, language, dtype, ",".join(sorted(shape.split(","))))


@dataclass(frozen=True)
class Standing:
    """Where a candidate's latest run stands."""

    run_id: str
    decided: bool
    """Nothing is left to be done."""
    verified: bool
    handed_in: bool
    """Its judgement was begun, or is next."""


def standings(home: Path, gpu: str) -> dict[Item, Standing]:
    """Each of our candidates for a GPU with its latest run under the workspace's policy, as the ledger tells."""
    from forge.app.workspace import Workspace
    from forge.domain.digest import digest_of
    from forge.domain.verdict import UNDECIDED

    found: dict[Item, Standing] = {}
    gone = {recorded.event.run_id for recorded, standing in kernels(home) if standing.status in TO_MEASURE_ANEW}
    with Workspace.open(home) as workspace:
        policy = digest_of(workspace.policy)
        for run in workspace.run_states().runs.values():
            if run.task is None or run.submitted is None:
                continue
            task = run.task.event.task
            if task.policy_sha256 != policy or task.target.gpu != gpu:
                continue
            if run.run_id in gone:
                found.pop(item_of(task), None)
                continue
            undecided = run.failure is not None and run.failure.event.reason.code in UNDECIDED
            ended = (
                run.promotion is not None or run.rejection is not None or (run.failure is not None and not undecided)
            )
            ready = run.state == "candidate_ready"
            standing = Standing(run.run_id, decided=ended, verified=run.verified is not None, handed_in=ready)
            found[item_of(task)] = standing
    return found


def item_of(task: "Task") -> Item:
    """The candidate that ships for a task."""
    shape = ",".join(sorted(f"{axis}={size}" for axis, size in task.shape.items()))
    folder = task.op if task.language == "triton" else f"{task.op}_{task.language}"
    return Item(folder, task.op, task.language, task.dtype, shape)


def kernels(home: Path) -> "list[tuple[Recorded[KernelPromoted], KernelStanding]]":
    """Every kernel that the ledger promoted, with what became of it."""
    from forge.app.workspace import Workspace
    from forge.events import KernelPromoted
    from forge.projections.fold import holds
    from forge.projections.standing import Standings

    with Workspace.open(home) as workspace:
        history = list(workspace.ledger.read())
    standing = Standings(history)
    promoted = [one for one in history if holds(one, KernelPromoted)]
    return [(one, standing.of(one.event.kernel_id, one.event.benchmark_seq)) for one in promoted]


def by_value(wanted: list[Item], home: Path) -> list[Item]:
    """Sort: what the ledger once promoted, then an engine's heaviest operations, then the rest; bf16 before fp16."""
    once = {item_of(recorded.event.task) for recorded, _ in kernels(home)}

    def rank(item: Item) -> int:
        worth = 0 if item in once else 1 if item.op in HEAVIEST else 3
        return worth if item.dtype == "bf16" else worth + 2

    return sorted(wanted, key=rank)


def work(home: Path) -> None:
    """A worker: one JSON line in, one out, until the input ends. Its GPU is the one that it is shown."""
    from forge.app.phases.phases import benchmark_candidate, promote_candidate, submit_candidate, verify_candidate
    from forge.app.phases.replication import replicate_kernel
    from forge.app.tasks.create import create_task
    from forge.app.workspace import Workspace
    from forge.errors import ForgeError
    from forge.pipeline.create import TaskRequest

    gpu = gpu_name()

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
                        op=item.op, language=item.language, gpu=gpu, dtype=item.dtype, shape=item.shape
                    )
                    run_id = order["run_id"]
                    if run_id is None:
                        run_id = create_task(workspace, request).run_id
                        submit_candidate(
                            workspace, workspace.find_run(run_id), EXAMPLES / item.folder, author="forge"
                        )
                    event = verify_candidate(
                        workspace, workspace.find_run(run_id), progress=quiet, again=order["again"]
                    )
                    told["run_id"] = run_id
                elif order["phase"] == "again":
                    answer = replicate_kernel(workspace, order["kernel_id"], progress=quiet)
                    told["event"], told["detail"] = f"Replication {answer['outcome']}", answer
                    event = None
                else:
                    run_id = order["run_id"]
                    event = benchmark_candidate(workspace, workspace.find_run(run_id), progress=quiet)
                    if type(event).__name__ == "BenchmarkRecorded":
                        event = promote_candidate(workspace, workspace.find_run(run_id))
                if event is not None:
                    told["event"], told["detail"] = type(event).__name__, event.model_dump(mode="json")
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

    def ask(self, order: Order) -> dict[str, object]:
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

    def kill(self) -> None:
        """End it at once; what it has begun is begun again another time."""
        self._process.kill()

    def close(self) -> None:
        """End it when it has nothing to do."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


def run_phase(workers: list[Worker], orders: list[Order], deadline: float) -> None:
    """Give every worker orders until there are none left, or no time."""
    queue: Queue[Order] = Queue()
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


Line = PriorityQueue[tuple[int, int, Order]]
"""Orders that wait for a worker: the smallest rank first, then the one that came first."""


def pipelined(judges: list[Worker], timers: list[Worker], to_judge: Line, to_time: Line, deadline: float) -> None:
    """Judge and time at once: the next free timer takes what was verified. Nothing begins after the deadline."""

    def serve(worker: Worker, line: Line, more: Callable[[], bool]) -> None:
        while time.monotonic() < deadline:
            try:
                rank, number, order = line.get(timeout=0.2)
            except Empty:
                if more():
                    continue
                return
            try:
                answer = worker.ask(order)
            except (EOFError, BrokenPipeError):
                return
            print(line_of(answer), flush=True)
            if answer["event"] == "CandidateVerified":
                to_time.put((rank, number, {"phase": "bench", "item": order["item"], "run_id": answer["run_id"]}))

    judging = [threading.Thread(target=serve, args=(one, to_judge, lambda: False)) for one in judges]
    timing = [
        threading.Thread(target=serve, args=(one, to_time, lambda: any(judge.is_alive() for judge in judging)))
        for one in timers
    ]
    for thread in (*judging, *timing):
        thread.start()
    for thread in (*judging, *timing):
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


def gpu_name() -> str:
    """Name of this process's GPU, such as h200."""
    from forge.platforms.cuda import gpu_facts

    facts = gpu_facts()
    assert facts is not None, "main looks for GPUs before anything else"
    return facts.slug


def gpus() -> list[str]:
    """UUIDs of all GPUs."""
    from forge.platforms.cuda import devices

    return [device.uuid for device in devices()]


def chosen(indices: str) -> list[str]:
    """UUIDs of the GPUs with these indices; of all if there is no index."""
    wanted = {int(one) for one in indices.split(",") if one}
    return [uuid for index, uuid in enumerate(gpus()) if not wanted or index in wanted]


def asked() -> argparse.Namespace:
    """What the command line asks for; an error if it names a candidate that isn't there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--budget-s", type=float, default=1e9)
    parser.add_argument("--judges", type=int, default=JUDGES_PER_GPU, help="candidates judged at a time on each GPU")
    parser.add_argument("--replicate", action="store_true", help="measure again what was measured once")
    parser.add_argument("--gpus", default="", help="indices, of all by default")
    parser.add_argument("--judge-on", default="", help="indices of GPUs that judge while the others time")
    parser.add_argument("--end-s", type=float, default=1e9, help="seconds after which all workers are ended")
    parser.add_argument("--again", default="", help="what to judge anew, decided or not; named as in --only")
    parser.add_argument("--work", action="store_true")
    options = parser.parse_args()
    for one in named(options.only) | named(options.again):
        if not list(items({one})):
            parser.error(f"{one!r} names no candidate: expected an operation or a folder, with @decode or so")
    return options


def main() -> None:
    """Judge as many candidates as can be judged at a time, time those, and go on with the next."""
    options = asked()
    if options.work:
        work(options.home)
        return
    started = time.monotonic()
    deadline = started + options.budget_s
    found = chosen(options.gpus)
    if not found:
        sys.exit("this needs a GPU: nvidia-smi lists none, or none of those asked for")
    wanted = by_value(list(items(named(options.only))), options.home)
    gpu = gpu_name()
    twice = provisional(options.home, set(wanted), gpu) if options.replicate else []
    if options.replicate and not options.judge_on:
        run_on(options.home, found, 1, twice, deadline)
        return
    anew = set(items(named(options.again))) if options.again else set()
    if not (options.home / "policy.toml").exists():
        (options.home / "policy.toml").write_text(POLICY)
    if options.judge_on:
        queues = lines(wanted, standings(options.home, gpu), anew, twice)
        beside(options, found, queues, deadline, started + options.end_s)
        return
    judged, timed = set[Item](), set[Item]()  # each is asked once in this process, whatever it comes to
    while time.monotonic() < deadline:
        stood = {item: standing for item, standing in standings(options.home, gpu).items() if item not in anew}
        open_now = [item for item in wanted if item not in stood or not stood[item].decided]
        untimed = [item for item in open_now if item in stood and stood[item].verified and item not in timed]
        timed |= set(untimed)
        orders: list[Order] = [
            {"phase": "bench", "item": asdict(one), "run_id": stood[one].run_id} for one in untimed
        ]
        run_on(options.home, found, 1, orders, deadline)
        fresh = [one for one in open_now if not (one in stood and stood[one].verified) and one not in judged]
        fresh = fresh[: options.judges * len(found)]
        if not fresh:
            return
        judged |= set(fresh)
        orders = [to_verify(item, stood.get(item), again=item in anew) for item in fresh]
        anew -= set(fresh)
        run_on(options.home, found, options.judges, orders, deadline)


def beside(
    options: argparse.Namespace, found: list[str], queues: tuple[Line, Line], deadline: float, end: float
) -> None:
    """Judge on the GPUs that are named for it while the others time; end all workers at `end`."""
    judging = chosen(options.judge_on)
    timers = [Worker(options.home, uuid) for uuid in found if uuid not in judging]
    judges = [Worker(options.home, uuid) for uuid in judging for _ in range(options.judges)]

    def kill() -> None:
        for worker in (*judges, *timers):
            worker.kill()

    ending = threading.Timer(min(end - time.monotonic(), threading.TIMEOUT_MAX), kill)
    ending.daemon = True
    ending.start()
    pipelined(judges, timers, *queues, deadline)
    for worker in (*judges, *timers):
        worker.close()


def to_verify(item: Item, standing: Standing | None, *, again: bool) -> Order:
    """The order to judge a candidate; a run that was interrupted before its verdict goes on."""
    run_id = standing.run_id if standing is not None and standing.handed_in else None
    return {"phase": "verify", "item": asdict(item), "again": again, "run_id": run_id}


def lines(wanted: list[Item], stood: dict[Item, Standing], anew: set[Item], twice: list[Order]) -> tuple[Line, Line]:
    """Orders for the judges and for the timers, the most valuable first; kernels to measure again before all."""
    to_judge, to_time = Line(), Line()
    for number, order in enumerate(twice):
        to_time.put((-1, number, order))
    for rank, item in enumerate(wanted):
        standing = None if item in anew else stood.get(item)
        if standing is None or not (standing.decided or standing.verified):
            to_judge.put((rank, 0, to_verify(item, standing, again=item in anew)))
        elif not standing.decided:
            to_time.put((rank, 0, {"phase": "bench", "item": asdict(item), "run_id": standing.run_id}))
    return to_judge, to_time


def provisional(home: Path, wanted: set[Item], gpu: str) -> list[Order]:
    """Orders to measure again each kernel on offer for a GPU that was measured once."""
    return [
        {"phase": "again", "item": asdict(item_of(recorded.event.task)), "kernel_id": recorded.event.kernel_id}
        for recorded, standing in kernels(home)
        if standing.status == "active"
        and standing.evidence == "provisional"
        and recorded.event.task.target.gpu == gpu
        and item_of(recorded.event.task) in wanted
    ]


def run_on(home: Path, gpus: list[str], each: int, orders: list[Order], deadline: float) -> None:
    """One phase over all orders, by so many workers on each GPU."""
    count = min(each, -(-len(orders) // len(gpus)))
    workers = [Worker(home, gpu) for gpu in gpus for _ in range(count)]
    run_phase(workers, orders, deadline)
    for worker in workers:
        worker.close()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # every phase that ended is in the ledger, and the same command goes on
        sys.exit(130)
