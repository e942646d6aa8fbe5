"""Record what the gates say of the Triton candidates here: python -m tests.gpu.record > tests/gpu/recorded/h200.json.

Where CI has no GPU, the recording is what the candidates' first lines are held against.
"""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from forge.domain.tensors import DType
from forge.executor.turns import lock_of, turn
from forge.lab.sanitizer import compute
from forge.lab.verification import examine
from forge.platforms.capture import capture_environment
from tests.evil.described import described
from tests.gpu.place import gpu
from tests.gpu.test_candidates import CANDIDATES, HONEST, on_the_gpu

AT_ONCE = 6
LOG_LINES = 12


def recorded(name: str, kernel: str, *, dtype: DType = "fp32", limit_s: float = 120.0) -> dict[str, Any]:
    """One candidate's verdict, what each gate observed, and the last lines of its log."""
    examined = examine(on_the_gpu(kernel, dtype=dtype, limit_s=limit_s), progress=lambda _: None)
    gates = [gate.model_dump(mode="json", include={"name", "verdict", "observed"}) for gate in examined.gates]
    verdict = examined.verdict.model_dump(mode="json")
    log_tail = "\n".join(examined.log.splitlines()[-LOG_LINES:])
    return {"candidate": name, "verdict": verdict, "gates": gates, "log_tail": log_tail}


def machine() -> dict[str, str | None]:
    """Which GPU it was, and the versions of what the gates rest on."""
    facts = capture_environment(forge_version="", forge_commit=None, device=gpu())
    said = subprocess.run([compute.program(), "--version"], capture_output=True, text=True, check=True).stdout
    tool = re.search(r"^Version (\S+)", said, re.MULTILINE)
    return {
        "device": facts.gpu.name if facts.gpu else None,
        "driver": facts.driver,
        "torch": facts.torch,
        "triton": facts.triton,
        "compute_sanitizer": tool.group(1) if tool else None,
    }


def main() -> None:
    with turn(lock_of(gpu()), alone=False, progress=lambda _: None), ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(recorded, f"honest:{dtype}", HONEST, dtype=dtype) for dtype in ("fp32", "fp16", "bf16")]
        for path in CANDIDATES:
            said = described(path)
            limit_s = said.limit_s if "TIMEOUT" in said.codes else 120.0
            asked.append(pool.submit(recorded, path.stem, path.read_text(), limit_s=limit_s))
        results = [one.result() for one in asked]
    print(json.dumps({**machine(), "results": results}, indent=1))


if __name__ == "__main__":
    main()
