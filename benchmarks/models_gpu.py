"""Measures what adopted kernels are worth in whole models on a GPU, and records it in a copy of a workspace.

    python benchmarks/models_gpu.py COPY [--cells llama-prefill ...] [--pairs 3] [--seconds 240]

COPY is a workspace that may be written: every measurement appends `ModelMeasured`. A cell measures one model and
workload in the three modes, in the same processes. No cell is begun after `--seconds`; each says how long it took.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from forge.app.models.measuring import measure
from forge.app.tasks.operation_description import describe_promoted
from forge.app.workspace import Workspace
from forge.domain.model_measurement import MODES, parse_mode, parse_workload
from forge.errors import ForgeError

MODELS = Path(__file__).with_name("models")
CELLS = {
    "llama-decode": ("llama_8b.py", "decode:b=16,context=1024"),
    "llama-prefill": ("llama_8b.py", "prefill:b=1,tokens=4096"),
    "moe-prefill": ("moe_block.py", "prefill:b=1,tokens=4096"),
    "moe-decode": ("moe_block.py", "decode:b=16,context=1024"),
}


def shown(found: dict[str, Any]) -> dict[str, object]:  # Any: an event's fields
    """Return what a person looks at first."""
    compared, speedup = found["comparison"], found["comparison"]["speedup"]
    return {
        "event": found["seq"],
        "speedup": [round(speedup[name], 5) for name in ("ratio", "low", "high")],
        "half width, %": round((speedup["high"] - speedup["low"]) / 2 * 100, 3),
        "control": [round(compared["control"][name], 5) for name in ("ratio", "low", "high")],
        "conclusive": found["conclusive"],
        "predicted": round(compared["predicted"], 5),
        "step us": [round(compared[f"{side}_median_ns"] / 1e3, 2) for side in ("own", "adopted")],
        "replaced share": round(compared["replaced_share"], 5),
        "errors": [compared["own_error"], compared["adopted_error"]],
        "equal tokens": compared["equal_tokens"],
        "took": [
            [one["op"], one["backend"], one["kernel_id"] or one["reason"], one["hits"]] for one in found["uses"]
        ],
    }


def main() -> None:
    """Print one line of JSON for each cell and mode."""
    parser = argparse.ArgumentParser()
    parser.add_argument("copy", type=Path)
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), default=list(CELLS)[:3])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--window-ms", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=240.0)
    chosen = parser.parse_args()
    begun = time.monotonic()
    with Workspace.open(chosen.copy) as workspace:
        print(json.dumps({"described": describe_promoted(workspace)}), flush=True)
        for cell in chosen.cells:
            if time.monotonic() - begun > chosen.seconds:
                print(json.dumps({"cell": cell, "not measured": "no time left"}), flush=True)
                continue
            model, workload = CELLS[cell]
            started = time.monotonic()
            try:
                found = measure(
                    workspace,
                    MODELS / model,
                    workload=parse_workload(workload),
                    modes=[parse_mode(one) for one in chosen.modes],
                    seed=0,
                    window_s=chosen.window_ms / 1000,
                    process_pairs=chosen.pairs,
                    rounds=chosen.rounds,
                )
            except ForgeError as error:
                found = []
                print(json.dumps({"cell": cell, "failed": error.message}), flush=True)
            for one in found:
                print(json.dumps({"cell": cell, "mode": one["mode"], **shown(one)}), flush=True)
            print(json.dumps({"cell": cell, "seconds": round(time.monotonic() - started, 1)}), flush=True)


if __name__ == "__main__":
    main()
