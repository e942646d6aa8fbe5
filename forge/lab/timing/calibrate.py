"""Measures a GPU's ceilings in a separate process: `python -m forge.lab.timing.calibrate [UUID]` prints JSON.

Only Forge's code and the vendor's run in it. Every rate is the best of many replays of a CUDA graph, between CUDA
events. The data is random: zeros switch fewer transistors and run up to 15 % faster.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forge.domain.device import Ceilings, Device
from forge.errors import EnvironmentUnfit

if TYPE_CHECKING:
    import torch

LARGE_BYTES = 2**30
"""Size of the copied buffer in bytes, or a quarter of the free memory if that is less. Longer copies come nearer to
the memory's peak: 8 MB reached 54 % of the floor, 537 MB 95 % (docs/measurement.md)."""
REPLAYS = 30
"""Number of replays of a graph, of which the fastest counts. Chosen; each more costs some milliseconds at most, once
for a device."""
EMPTY_NODES = 200
"""Number of empty kernels in the graph that measures a launch. A graph's own start of up to 5 us then adds at most 25
ns to each."""
PASSES = 50
"""Number of passes through the cached buffers in one launch. Chosen; the time of the launch hardly matters then."""
CACHED_BLOCK = 4096
"""Number of words that one block copies at a time. Each of a block's 256 threads then copies 16 words, in four loads
of 16 bytes."""
SIDES = {"fp16": 8192, "bf16": 8192, "fp8": 8192, "tf32": 8192, "fp32": 4096}
"""Side of the square matrices whose product is timed, by element type. One product then takes 0.5 to 3 ms at the peak
rates of an H100 (`forge/platforms/gpu_table`), far longer than a launch."""
LIMIT_S = 120.0
"""Time limit of the process in seconds. A first run imports torch from a cold disk; a warm one takes under 8 s."""


def calibrate(device: Device) -> Ceilings:
    """Measure a device in a separate process, since this one keeps no CUDA context; raise EnvironmentUnfit."""
    command = [sys.executable, "-m", "forge.lab.timing.calibrate", device.uuid]
    hint = "let nothing else use the GPU and try again; forge doctor says what this machine lacks"
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise EnvironmentUnfit(f"GPU {device.uuid!r} wasn't calibrated in {LIMIT_S:.0f} s", hint=hint) from late
    if ended.returncode != 0:
        said = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
        raise EnvironmentUnfit(
            f"GPU {device.uuid!r} can't be calibrated; the last line of its log: {said[:300]}", hint=hint
        )
    return Ceilings.model_validate_json(ended.stdout)


def select(uuid: str | None) -> "torch.device":
    """Return the device with the UUID among those that CUDA shows this process; without a UUID, the first one.

    Raises EnvironmentUnfit if there is none.
    """
    import torch

    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        if uuid is None or str(torch.cuda.get_device_properties(index).uuid) == uuid.removeprefix("GPU-"):
            torch.cuda.set_device(index)
            return torch.device("cuda", index)
    raise EnvironmentUnfit(
        f"CUDA shows no GPU {uuid or 'at all'!r} to torch {torch.__version__}: expected one that both know",
        hint="forge doctor",
    )


def measure(device: "torch.device") -> Ceilings:
    """Measure every ceiling of the device; this takes under 8 s."""
    import torch

    facts = torch.cuda.get_device_properties(device)
    free_bytes, _ = torch.cuda.mem_get_info(device)
    x = torch.randn(min(LARGE_BYTES, free_bytes // 4) // 4096 * 1024, device=device)
    copied, read, written, cached = _memory_rates(x, torch.empty_like(x), facts)
    return Ceilings(
        copy_bytes_per_s=copied,
        read_bytes_per_s=read,
        write_bytes_per_s=written,
        cached_bytes_per_s=cached,
        flop_per_s=_matrix_rates(device),
        launch_ns=_launch_ns(device),
        cache_bytes=facts.L2_cache_size,
        multiprocessors=facts.multi_processor_count,
    )


# Any: torch's type of a device's properties has no public name
def _memory_rates(x: "torch.Tensor", y: "torch.Tensor", facts: Any) -> tuple[float, float, float, float | None]:
    """Return bytes per second: copied, read, written, and copied within the cache; each by the fastest known way."""
    import torch

    total = torch.empty((), device=x.device)
    copying_ns = min(_best_ns(lambda: y.copy_(x)), _best_ns(lambda: torch.add(x, 1.0, out=y)))
    summing_ns = _best_ns(lambda: torch.sum(x, dim=0, out=total))
    reading_ns = min(summing_ns, _best_ns(lambda: torch.amax(x, dim=0, out=total)))
    writing_ns = _best_ns(lambda: y.fill_(1.5))
    cached = _cached_bytes_per_s(x, y, facts.L2_cache_size, facts.multi_processor_count)
    return 2 * x.nbytes / copying_ns * 1e9, x.nbytes / reading_ns * 1e9, y.nbytes / writing_ns * 1e9, cached


def _best_ns(work: Callable[[], object], *, repeats: int = 4) -> float:
    """Return the nanoseconds of one `work`: the least over replays of a graph that holds it `repeats` times."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # a capture can't include what a first call compiles, loads and allocates
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    graph.replay()
    best_ms = float("inf")
    for _ in range(REPLAYS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        best_ms = min(best_ms, start.elapsed_time(end))
    return best_ms / repeats * 1e6


def _cached_bytes_per_s(x: "torch.Tensor", y: "torch.Tensor", cache_bytes: int, multiprocessors: int) -> float | None:
    """Return the rate of a copy whose two buffers fill half of the cache; None if the device reports no cache."""
    from forge.lab.timing.ceiling_kernels import copy_again

    words: int = min(cache_bytes // 4 // 4, x.numel()) // CACHED_BLOCK * CACHED_BLOCK
    if words == 0:
        return None
    grid = (multiprocessors * 2,)
    copying_ns = _best_ns(lambda: copy_again[grid](x, y, words, PASSES, CACHED_BLOCK, num_warps=8), repeats=1)
    return 2.0 * words * 4 * PASSES / copying_ns * 1e9


def _launch_ns(device: "torch.device") -> float:
    import torch

    from forge.lab.timing.ceiling_kernels import empty

    x = torch.empty(1, device=device)
    return _best_ns(lambda: empty[(1,)](x), repeats=EMPTY_NODES)


def _matrix_rates(device: "torch.device") -> dict[str, float]:
    """Return flop/s of a product of square matrices, by element type.

    A type that this device or this torch lacks is left out.
    """
    rates: dict[str, float] = {}
    for name, side in SIDES.items():
        try:
            taken_ns = _best_ns(_product(name, side, device), repeats=2)
        except (RuntimeError, NotImplementedError):
            continue
        rates[name] = 2.0 * side**3 / taken_ns * 1e9
    return rates


def _product(name: str, side: int, device: "torch.device") -> Callable[[], object]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    if name != "fp8":
        out = torch.empty(side, side, device=device, dtype=dtype)
        return lambda: torch.mm(a, b, out=out)
    one = torch.ones((), device=device)
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
    return lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def main() -> int:
    """Measure the device and print its ceilings as JSON."""
    sys.stdout.write(measure(select(sys.argv[1] if len(sys.argv) > 1 else None)).model_dump_json() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
