"""Whatever a caller hands over, a kernel runs only inside its evidence, and the answer is the reference's."""

import sys

from forge.adopt import adopt
from forge.domain.digest import sha256
from tests.adopt.making import kernel, publish
from tests.adopt.random_calls import NOTING, OF_ANOTHER_DEVICE, of_other_devices, run

CALLS = 2500
"""Number of random calls: about six seconds. benchmarks/adopt.py makes 100,000."""


def test_random_calls_never_run_a_kernel_outside_its_evidence(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", NOTING), *of_other_devices()])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        outcome = run(CALLS, seed=1)
        taken = {line["backend"]: line["hits"] for line in ops.report().lines if line["backend"] == "source"}
        reasons = {line["reason"] for line in ops.report().lines}
    assert f"forge_promoted_{sha256(OF_ANOTHER_DEVICE.encode())}" not in sys.modules
    module = sys.modules[f"forge_promoted_{sha256(NOTING.encode())}"]
    assert module.WRONG == []
    assert outcome.wrong == []
    assert taken
    assert {"gradient", "tensor_type", "dtype", "operands", "scalars", "layout", "no_kernel"} <= reasons
