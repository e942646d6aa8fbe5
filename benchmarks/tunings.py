"""Tunes one compiled reference several times: python benchmarks/tunings.py quantize_fp8_per_tensor bf16 16x4096.

Each tuning is a process of its own. The first compiles; the others have a copy of what it left without the
configurations that Inductor chose. A call's time is that of a graph of calls on different operands, over its number
of calls. Prints JSON: for each mode of torch.compile the microseconds of a call after each tuning.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from forge.domain.tensors import DType, Shape, parse_dtype
from forge.operations import find_operation

MODES = ("default", "max-autotune-no-cudagraphs")
TUNINGS = 6
REPLAYS = 30
SET_BYTES = 256 * 2**20
"""Bytes of all operands together, more than any cache holds."""


def tuned_us(name: str, dtype: DType, shape: Shape, mode: str) -> float:
    """Compile and tune in this process, and return the median time of a call in microseconds."""
    import torch

    from forge.lab.inputs.draw import draw

    operation = find_operation(name)
    function = torch.compile(operation.reference, dynamic=False, mode=None if mode == "default" else mode)
    drawn = [tensor.cuda() for tensor in draw(operation, shape, dtype, "normal", seed=1)]
    count = max(8, min(256, SET_BYTES // (2 * sum(tensor.nbytes for tensor in drawn))))
    sets = [[tensor.clone() for tensor in drawn] for _ in range(count)]
    scalars = tuple(operation.scalars.values())
    for operands in sets[:3]:
        function(*operands, *scalars)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [function(*operands, *scalars) for operands in sets]
    taken = []
    for _ in range(REPLAYS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) * 1e3 / count)
    del kept
    return float(statistics.median(taken))


def tunings_us(arguments: list[str], mode: str, folder: Path) -> list[float]:
    """Return the time after each tuning."""
    times = []
    for number in range(TUNINGS):
        kept = folder / f"{mode}-{number}"
        if number:
            shutil.copytree(folder / f"{mode}-0", kept)
            for choice in kept.rglob("*.best_config"):
                choice.unlink()
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(kept),
            "TRITON_CACHE_DIR": str(kept / "triton"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0",
        }
        command = [sys.executable, __file__, *arguments, mode]
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        times.append(round(float(said.splitlines()[-1]), 1))
    return times


def main() -> None:
    name, dtype, sizes, *mode = sys.argv[1:]
    shape = dict(zip(find_operation(name).axes, map(int, sizes.split("x")), strict=True))
    if mode:
        print(tuned_us(name, parse_dtype(dtype), shape, mode[0]))
        return
    with tempfile.TemporaryDirectory() as folder:
        times = {one: tunings_us(sys.argv[1:], one, Path(folder)) for one in MODES}
    print(json.dumps({"operation": name, "dtype": dtype, "shape": shape, "us": times}))


if __name__ == "__main__":
    main()
