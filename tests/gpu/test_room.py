"""A candidate isn't refused for device memory that another program holds: there is no verdict until it is free."""

import dataclasses

import pytest
import torch

from forge.domain.verdict import Accepted
from forge.errors import EnvironmentUnfit
from forge.executor.local import LocalExecutor
from tests.gpu.place import gpu
from tests.gpu.test_candidates import HONEST, on_the_gpu

LEFT_BYTES = 5 * 2**29
"""Memory that the other program leaves: enough for contexts and small calls, too little for the largest call."""


@pytest.mark.usefixtures("turns_of_its_own")
def test_no_verdict_while_another_program_holds_the_memory_and_one_afterwards(tmp_path) -> None:
    device = gpu()
    executor = LocalExecutor(tmp_path / "lock", device=device)
    job = dataclasses.replace(on_the_gpu(HONEST), gpu=device)
    free_bytes, _ = torch.cuda.mem_get_info()
    held = torch.empty(free_bytes - LEFT_BYTES, dtype=torch.uint8, device="cuda")
    said: list[str] = []
    with pytest.raises(EnvironmentUnfit, match="in use while no candidate runs there"):
        executor.examine(job, progress=said.append)
    assert "the GPU's memory ran out: judged anew while no other job runs there" in said
    del held
    torch.cuda.empty_cache()
    examined = executor.examine(job, progress=said.append)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
