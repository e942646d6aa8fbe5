"""Solves three whole modules with hand-written Triton kernels for their parts, and has the composed kernels judged.

Usage: python benchmarks/solve_gpu.py [--gpu h200] [--small] [--sessions] [MODULE ...] > solved.json

MODULE is `mlp`, `transformer_block` or `moe_gate`; without one, all three are solved in turn. Each is taken apart by
the way of `forge agent solve`: exported in the sandbox, grouped by the rule, and its parts must add up to its own
bytes. The kernels in `benchmarks/module_parts/` are then put together, and the whole goes through every gate, the
clock and the promotion rule. With `--sessions`, each part's kernel goes through them before, in a session of its own;
that takes longer by some minutes. `--small` takes sizes that an interpreter can do, to try it without a GPU.

The result has, for each module: the parts, the share of its arithmetic and bytes that was replaced, the verdict, and
its time beside each baseline, `torch.compile` of the whole module among them, whatever it is.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forge.app.sessions.judging import timing_of
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.solve.children import best_kernel, task_of_part
from forge.app.solve.composing import judge_whole
from forge.app.solve.taking_apart import TakenApart, take_apart
from forge.app.tasks.known_tasks import find_task
from forge.app.tasks.references import freeze_reference, infer_reference
from forge.app.workspace import Workspace
from forge.authors.kinds import AuthorSource, make_author
from forge.domain.budget import Amounts
from forge.domain.digest import Digest
from forge.lab.parts.compose import PartKernel
from forge.lab.parts.groups import Part
from forge.pipeline.create import TaskRequest
from forge.pipeline.starter import starter_files
from forge.sandbox.isolation_here import isolation

KERNELS = Path(__file__).with_name("module_parts")
"""Folder with the kernels' texts."""
BY_OPERATORS = {
    ("linear",): ("linear", "linear"),
    ("linear", "gelu"): ("linear", "linear_gelu"),
    ("linear", "add"): ("linear", "linear_residual"),
    ("linear", "view", "permute", "unbind"): ("qkv", "qkv"),
    ("linear", "reshape", "permute", "unbind"): ("qkv", "qkv"),
    ("scaled_dot_product_attention", "transpose", "reshape"): ("attention", "attention"),
    ("scaled_dot_product_attention", "transpose", "view"): ("attention", "attention"),
    ("layer_norm",): ("layer_norm", "layer_norm"),
    ("softmax",): ("softmax", "softmax"),
    ("topk",): ("topk", "topk"),
    ("sum", "div"): ("share", "share"),
}
"""Operators of a part -> file of its kernel, and the kernel's function."""
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
MLP = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear({width}, {inner}), nn.Linear({inner}, {inner})
        self.c, self.d = nn.Linear({inner}, {inner}), nn.Linear({inner}, {width})

    def forward(self, x):
        return self.d(F.gelu(self.c(F.gelu(self.b(F.gelu(self.a(x)))))))


def get_inputs():
    return [torch.randn({rows}, {width})]
"""
BLOCK = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm({width}), nn.LayerNorm({width})
        self.qkv, self.out = nn.Linear({width}, 3 * {width}), nn.Linear({width}, {width})
        self.up, self.down = nn.Linear({width}, {inner}), nn.Linear({inner}, {width})

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).view({batch}, {rows}, 3, 8, {width} // 8).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape({batch}, {rows}, {width}))
        return x + self.down(F.gelu(self.up(self.n2(x))))


def get_inputs():
    return [torch.randn({batch}, {rows}, {width})]
"""
GATE = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.out = nn.Linear({width}, {inner}), nn.Linear(2, {inner})

    def forward(self, x):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        return self.out(weights / weights.sum(-1, keepdim=True)), chosen


def get_inputs():
    return [torch.randn({rows}, {width})]
"""
LARGE: dict[str, tuple[str, dict[str, int]]] = {
    "mlp": (MLP, {"rows": 1024, "width": 512, "inner": 1024}),
    "transformer_block": (BLOCK, {"batch": 4, "rows": 256, "width": 512, "inner": 2048}),
    "moe_gate": (GATE, {"rows": 4096, "width": 1024, "inner": 64}),
}
"""Module -> its source, and its sizes on a GPU."""
SMALL: dict[str, dict[str, int]] = {
    "mlp": {"rows": 4, "width": 16, "inner": 32},
    "transformer_block": {"batch": 1, "rows": 4, "width": 128, "inner": 32},
    "moe_gate": {"rows": 4, "width": 16, "inner": 8},
}
"""Module -> sizes for an interpreter."""
ROOM = Amounts(candidates=1, wall_ms=3_600_000, device_ms=3_600_000)
"""Budget of a part's session: one candidate."""


@dataclass(frozen=True)
class Bench:
    """What a module is solved with."""

    workspace: Workspace
    request: TaskRequest
    in_sessions: bool

    def solved(self, source: bytes, path: Path) -> dict[str, Any]:
        """Solve one module, and return what came of it."""
        began = time.monotonic()
        path.write_bytes(source)
        found = infer_reference(self.workspace, path, self.request, progress=said)
        task_id = freeze_reference(self.workspace, found).task_id
        apart = take_apart(source, task_id=task_id, policy=self.workspace.policy, isolation=isolation())
        said(f"route {apart.routed.route}: {apart.routed.detail}")
        document: dict[str, Any] = {
            "route": apart.routed.model_dump(mode="json"),
            "apart_s": time.monotonic() - began,
        }
        kernels = {one: kernel_of(part) for one, part in zip(apart.signatures, apart.parts, strict=True)}
        if self.in_sessions:
            document["sessions"] = self.parts_in_sessions(apart, kernels)
        whole = judge_whole(self.workspace, source, apart, kernels, progress=said) if kernels else None
        if whole is not None:
            timed = timing_of(self.workspace.find_run(whole.composed.run_id))
            document |= {
                "flops_share": whole.composed.flops_share,
                "bytes_share": whole.composed.bytes_share,
                "left_on_references": len(whole.composed.left),
                "verdict": whole.judged.model_dump(mode="json"),
                "times": None if timed is None else timed.model_dump(mode="json"),
            }
        return {**document, "took_s": time.monotonic() - began}

    def parts_in_sessions(self, apart: TakenApart, kernels: dict[Digest, PartKernel]) -> list[dict[str, Any]]:
        """Let each part's kernel be judged in a session; one that doesn't pass the gates is dropped."""
        rows = []
        for place, (signature, reference) in enumerate((apart.references or {}).items()):
            began = time.monotonic()
            task = task_of_part(self.workspace, reference, self.request, name=f"part_{place}", progress=said)
            answer = None
            if task is None or self.judged_part(task, kernels[signature]) is None:
                del kernels[signature]
            else:
                answer = "passed"
            rows.append({"part": place, "gates": answer, "took_s": time.monotonic() - began})
            said(f"part {place}: {answer}")
        return rows

    def judged_part(self, task: str, kernel: PartKernel) -> PartKernel | None:
        """Judge a part's kernel in a session of its own; return it if every gate passed."""
        files = {name: text.decode() for name, text in starter_files(find_task(self.workspace, task).task).items()}
        entry = json.loads(files["metadata.json"])["entry_point"]
        files["kernel.py"] = f"{kernel.text}\n\n{entry} = {kernel.entry_point}\n"
        source = AuthorSource(kind="folders", files={f"1/{name}": text for name, text in files.items()}, options={})
        author = make_author(source)
        session_id = open_session(
            self.workspace, author, SessionRequest(task=task, seed=1, budget=ROOM), source=source
        )
        state = work_off(self.workspace, session_id, author, Means(progress=said))
        return best_kernel(self.workspace, state)


def kernel_of(part: Part) -> PartKernel:
    """Return the hand-written kernel for a part."""
    operators = tuple(node.op.split(".")[1] for node in part.nodes if "." in node.op and "getitem" not in node.op)
    file, entry = BY_OPERATORS[operators]
    return PartKernel(text=(KERNELS / f"{file}.py").read_text(), entry_point=entry, cpp_source=None)


def said(line: str) -> None:
    """Show progress beside the result."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Solve the modules, and print one document for all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--sessions", action="store_true")
    parser.add_argument("modules", nargs="*", default=list(LARGE))
    chosen = parser.parse_args()
    results: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Workspace.create(Path(folder) / "home", origin="benchmark") as workspace,
    ):
        request = TaskRequest(op="", language="triton", gpu=chosen.gpu, dtype="fp32", shape="")
        for name in chosen.modules:
            text, sizes = LARGE[name]
            source = (HEAD + text.format(**(SMALL[name] if chosen.small else sizes))).encode()
            bench = Bench(workspace, request, chosen.sessions)
            results[name] = {"sizes": sizes, **bench.solved(source, Path(folder) / f"{name}.py")}
            said(json.dumps(results[name])[:2000])
    print(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
