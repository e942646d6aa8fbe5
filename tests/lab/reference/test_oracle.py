"""The oracle of a reference file: in fp64, in slices where that has no room, on another device where there is one."""

from functools import cache

import torch

from forge.domain.device import Device
from forge.lab.reference.answers import Answers, same
from forge.lab.reference.infer import Inferred
from forge.lab.reference.reference_guest import HERE, AnsweringDevice
from forge.sandbox.isolation import Walls
from forge.sandbox.reply import Refused
from tests.candidates import isolation
from tests.lab.reference.references import POLICY, ask, frozen

ROWS = """
import torch


def kernel(x):
    if not drawn:
        raise RuntimeError("expected all tensors to be on the same device")
    return torch.softmax(x, 1)


drawn = []


def get_inputs():
    drawn.append(True)
    return [torch.randn(12, 40)]
"""
"""A reference that runs only in a guest that also draws, as one that makes a tensor of its own on the processor."""
ELSEWHERE = AnsweringDevice(gpu=Device(index=0, uuid="GPU-0", node="/dev/nvidia0"))
"""A second guest, which is on the processor too."""


@cache
def rows() -> Inferred:
    return ask(ROWS)


def opened(inferred: Inferred, *, place: AnsweringDevice = HERE, most_wide_bytes: int | None = None) -> Answers:
    return Answers(
        inferred.contract,
        inferred.source,
        policy=POLICY,
        isolation=isolation(),
        threads=1,
        arena_bytes=2**26,
        place=place,
        most_wide_bytes=most_wide_bytes,
    )


def wide(answers: Answers, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    found = answers.outputs(inputs, answers.contract.shape, wide=True)
    assert not isinstance(found, Refused), found
    return found[0]


def test_what_has_no_room_in_fp64_is_computed_in_slices(walls: Walls) -> None:
    with opened(rows()) as whole:
        (x,) = whole.generated(1)
        exact = wide(whole, (x,))
        assert whole.oracle == "the reference in fp64 on the processor"
    five_rows = 5 * 2 * 8 * 40
    with opened(rows(), most_wide_bytes=five_rows) as sliced:
        sliced.generated(1)
        assert torch.equal(wide(sliced, (x,)), exact)
        assert sliced.oracle == "the reference in fp64 on the processor, 5 samples at a time"
    with opened(rows(), most_wide_bytes=1) as single:
        single.generated(1)
        assert torch.equal(wide(single, (x,)), exact)
        assert single.oracle.endswith("1 samples at a time")


def test_samples_that_depend_on_each_other_are_never_sliced(walls: Walls) -> None:
    """A normalisation over the batch: half of it has another mean."""
    with opened(frozen(), most_wide_bytes=1) as answers:
        inputs = (*answers.generated(1), *answers.state(1))
        whole = answers.asked("module", inputs, answers.contract.shape)
        assert not isinstance(whole, Refused)
        assert same(whole[0], wide(answers, inputs).float())
        assert answers.oracle == "the reference in fp64 on the processor"


def test_a_reference_that_runs_on_the_gpu_answers_there(walls: Walls) -> None:
    source = ROWS.replace("if not drawn", "if False")
    inferred = Inferred(rows().contract, source.encode(), rows().admission, ())
    with opened(inferred, place=ELSEWHERE) as answers:
        (x,) = answers.generated(1)
        assert torch.allclose(wide(answers, (x,)), torch.softmax(x.double(), 1))
        assert answers.oracle == "the reference in fp64 on the GPU"


def test_a_reference_that_fails_on_the_gpu_answers_on_the_processor_and_the_ledger_says_so(walls: Walls) -> None:
    with opened(rows(), place=ELSEWHERE) as answers:
        (x,) = answers.generated(1)
        assert torch.allclose(wide(answers, (x,)), torch.softmax(x.double(), 1))
        assert answers.oracle.startswith("the reference in fp64 on the processor; not on the GPU: ")


def test_what_both_devices_refuse_says_nothing_of_the_gpu(walls: Walls) -> None:
    source = ROWS.replace("if not drawn", "if x.shape[0] == 5")
    with opened(Inferred(rows().contract, source.encode(), rows().admission, ()), place=ELSEWHERE) as answers:
        assert isinstance(
            answers.asked("module", (torch.randn(5, 40),), {**rows().contract.shape, "batch": 5}), Refused
        )
        assert answers.left is None


def test_a_reference_that_leaves_the_gpu_later_is_inferred_on_the_processor_alone(walls: Walls) -> None:
    """Answers of two devices differ in their last bits, and would say that the reference isn't deterministic."""
    calls = "calls = []\ndrawn = []"
    source = ROWS.replace("drawn = []", calls).replace(
        "    if not drawn:",
        "    calls.append(1)\n    x = x if drawn else x * 1.001\n    if not drawn and len(calls) > 5:",
    )
    said: list[str] = []
    found = ask(source, place=ELSEWHERE, progress=said.append)
    assert found.contract == ask(source).contract
    assert [one for one in said if one.startswith("its answers on the processor, since it left the GPU")]


def test_a_reference_without_fp64_is_called_the_weaker_oracle_that_it_is(walls: Walls) -> None:
    contract = rows().contract.model_copy(update={"wide": False})
    with opened(Inferred(contract, rows().source, rows().admission, ())) as answers:
        assert answers.oracle == "the reference in fp32, since it doesn't run in fp64, on the processor"
