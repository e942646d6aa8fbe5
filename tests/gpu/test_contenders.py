"""The shipped contenders on a GPU: those that are installed are asked and ranked, the others said to be absent."""

from dataclasses import replace

import pytest

from forge.contenders.discovery import ContenderCatalogue, find_contenders
from forge.contenders.installed import find_installed
from forge.domain.contender import ContenderFailed, ContenderStanding, MeasuredInFull, ScreenedOut
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.timing.screening import ContenderScreening, screen
from forge.operations import find_operation
from tests.candidates import EXAMPLES
from tests.gpu.test_plans import on_the_gpu

ROWS = {"batch": 64, "hidden_size": 4096}
PRODUCT = {"m": 256, "k": 1024, "n": 1024}
DECODE = {"tokens": 8, "kv_len": 1024, "kv_heads": 8, "group": 4, "head_dim": 128}
PREFILL = {"tokens": 512, "kv_len": 512, "kv_heads": 8, "group": 4, "head_dim": 128}
POLICY = Policy(memory_limit_bytes=2**35)
SHIPPED = find_contenders()
OPERATIONS = {
    "softmax": ROWS,
    "rmsnorm": ROWS,
    "layernorm": ROWS,
    "fused_add_rmsnorm": ROWS,
    "silu_mul": ROWS,
    "matmul": PRODUCT,
    "attention_decode": DECODE,
    "attention_prefill": PREFILL,
}


def screened(name: str, dtype: DType, catalogue: ContenderCatalogue = SHIPPED) -> ContenderScreening:
    job = on_the_gpu((EXAMPLES / "honest_cpp" / "kernel.py").read_text(), language="cuda")
    asked = replace(job, operation=find_operation(name), shape=OPERATIONS[name], dtype=dtype, policy=POLICY)
    return screen(asked, catalogue, progress=print)


def said(standings: tuple[ContenderStanding, ...]) -> str:
    return "\n".join(f"{one.name}: {one.standing}" for one in standings)


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_each_operation_has_a_contender_that_is_right_in_bf16(name: str) -> None:
    screening = screened(name, "bf16")
    print(said(screening.standings))
    right = [one for one in screening.standings if isinstance(one.standing, MeasuredInFull | ScreenedOut)]
    assert right, said(screening.standings)
    assert screening.in_full


@pytest.mark.skipif(find_installed("liger-kernel") is None, reason="liger-kernel isn't installed")
@pytest.mark.parametrize("name", ["softmax", "rmsnorm", "layernorm", "silu_mul"])
def test_each_liger_kernel_loads_and_leaves_no_trace(name: str) -> None:
    liger = ContenderCatalogue(tuple(one for one in SHIPPED.contenders if one.library.name == "liger"), ())
    (one,) = screened(name, "bf16", liger).standings
    unfit = isinstance(one.standing, ContenderFailed) and one.standing.reason.code != "INCORRECT_NUMERICAL"
    assert not unfit, said((one,))
