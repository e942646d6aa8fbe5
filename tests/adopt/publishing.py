"""Publications, withdrawals and damage while threads call: what they may do is answer rightly."""

import json
import random
import threading
from pathlib import Path

import torch

from forge.adopt import adopt
from forge.operations.rmsnorm import rmsnorm as reference
from tests.adopt.making import RMSNORM, kernel, publish

EPS = 1e-6


def calling_while_publishing(folder: Path, *, count: int, threads: int) -> dict[str, object]:
    """Publish `count` times: kernels come, are revoked, and generations are damaged; return what was seen."""
    right, other = kernel("rmsnorm", RMSNORM), kernel("rmsnorm", RMSNORM + "# another\n", kernel_id="torch_other_v1")
    publish(folder, [right])
    x, weight = torch.randn(4, 64), torch.randn(64)
    expected = reference(x, weight, EPS)
    stop, wrong, errors, answers = threading.Event(), [], [], [0] * threads
    ops = adopt(folder, trust="promoted", refresh_s=0.001)

    def call(place: int) -> None:
        with torch.no_grad():
            while not stop.is_set():
                try:
                    if not torch.allclose(torch.ops.forge.rmsnorm(x, weight, EPS), expected, rtol=1e-4, atol=1e-5):
                        wrong.append(place)
                except Exception as error:
                    errors.append(repr(error))
                answers[place] += 1

    running = [threading.Thread(target=call, args=(place,)) for place in range(threads)]
    for one in running:
        one.start()
    late = _publish_all(folder, random.Random(3), count, [right, other], ops)
    stop.set()
    for one in running:
        one.join()
    backends = sorted({str(line["backend"]) for line in ops.report().lines})
    ops.close()
    return {
        "publications": count,
        "answers": sum(answers),
        "wrong": len(wrong),
        "errors": errors[:3],
        "revoked kernels that ran after a refresh": late,
        "backends": backends,
    }


def _publish_all(folder: Path, rng: random.Random, count: int, kernels: list, ops) -> int:
    """Publish again and again; return how often a revoked kernel was still chosen after a refresh."""
    late = 0
    x, weight = torch.zeros(4, 64), torch.zeros(64)
    for number in range(count):
        match rng.choice(["both", "one", "revoked", "damaged"]):
            case "both":
                publish(folder, kernels, seq=number + 2)
            case "one":
                publish(folder, kernels[:1], seq=number + 2)
            case "damaged":
                (folder / "current.json").write_bytes(b'{"schema_version": 3')
                ops.refresh()
                continue
            case _:
                gone = [{**one, "status": "revoked", "status_reason": "wrong"} for one in kernels]
                publish(folder, gone, seq=number + 2)
                while ops.generation != _published(folder):
                    ops.refresh()
                late += ops.explain("rmsnorm", x, weight)["takes"] != "fallback"
    return late


def _published(folder: Path) -> str:
    return json.loads((folder / "current.json").read_bytes())["sha256"]
