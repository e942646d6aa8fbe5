"""Right kernels of other styles than the reference's are right at every kind of values that is asked."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from forge.lab.calls.judged_outputs import judged_outputs
from forge.lab.inputs.draw import draw
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed
from forge.lab.reference.binding import answered
from tests.lab.reference.references import job_against, known

pytestmark = pytest.mark.usefixtures("walls")
Kernel = Callable[..., tuple[torch.Tensor, ...]]
FILE = """
import torch
import torch.nn.functional as F


def kernel({arguments}):
    return {formula}


def get_inputs():
    return [{drawn}]
"""
DRAWS = 6
TOPK = FILE.format(arguments="x", formula="torch.topk(x, 4, dim=-1)", drawn="torch.randn(32, 60)")
PLACES = FILE.format(arguments="x", formula="torch.topk(x, 4, dim=-1).indices", drawn="torch.randn(32, 60)")
SORT = FILE.format(arguments="x", formula="torch.sort(x, dim=-1)", drawn="torch.randn(16, 50)")
ROUTER = FILE.format(
    arguments="x, w", formula="torch.topk((x @ w).softmax(-1), 2)", drawn="torch.randn(64, 96), torch.randn(96, 16)"
)
ARGMAX = FILE.format(arguments="x", formula="x.argmax(-1)", drawn="torch.randn(32, 60)")
NORM = FILE.format(
    arguments="x, w, b", formula="F.layer_norm(x, (100,), w, b)", drawn="torch.rand(64, 100), *torch.rand(2, 100)"
)
SOFTMAX = FILE.format(arguments="x", formula="x.softmax(-1)", drawn="torch.randn(16, 300)")
ATTENTION = FILE.format(
    arguments="q, k, v",
    formula="F.scaled_dot_product_attention(q, k, v)",
    drawn="*torch.randn(3, 2, 50, 32)",
)
VARIANCE = FILE.format(arguments="x", formula="x.var(1, unbiased=False)", drawn="torch.rand(16, 500)")
CUMSUM = FILE.format(arguments="x", formula="x.cumsum(1)", drawn="torch.randn(16, 2000)")


def topk_first(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values, places = x.sort(dim=-1, descending=True, stable=True)
    return values[:, :4], places[:, :4]


def topk_last(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values, places = topk_first(x.flip(-1))
    return values, x.shape[-1] - 1 - places


def topk_same_place(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values, places = topk_first(x)
    return values, torch.where(values == values[:, :1], places[:, :1], places)


def places_first(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (topk_first(x)[1],)


def places_of_distinct_numbers(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Take the largest, then leave out all that equal it: the places differ, but their numbers are too small."""
    left, places = x.clone(), []
    for _ in range(4):
        largest = left.amax(-1, keepdim=True)
        free = torch.ones_like(left, dtype=torch.bool)
        for one in places:
            free.scatter_(-1, one, False)
        places.append(((left == largest) & free).int().argmax(-1, keepdim=True))
        left = left.masked_fill(left == largest, -torch.inf)
    return (torch.cat(places, -1),)


def topk_padded(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return topk_last(torch.nn.functional.pad(x, (0, 4)))


def sort_from_behind(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values, places = x.flip(-1).sort(dim=-1, stable=True)
    return values, x.shape[-1] - 1 - places


def router_on_logits(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    logits = x @ w
    places = logits.sort(dim=-1, descending=True, stable=True).indices[:, :2]
    return logits.softmax(-1).gather(-1, places), places


def argmax_first(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    places = torch.arange(x.shape[-1]).where(x == x.amax(-1, keepdim=True), x.shape[-1])
    return (places.amin(-1),)


def argmax_last(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (x.shape[-1] - 1 - argmax_first(x.flip(-1))[0],)


def norm_in_two_passes(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    centered = x - x.sum(-1, keepdim=True) * (1 / 100)
    return (centered * (centered.square().sum(-1, keepdim=True) * (1 / 100) + 1e-5).rsqrt() * w + b,)


def softmax_by_exp2(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scaled = x * 1.4426950408889634
    powers = torch.exp2(scaled - scaled.amax(-1, keepdim=True))
    return (powers / powers.sum(-1, keepdim=True),)


def softmax_padded(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (torch.nn.functional.pad(x, (0, 4), value=-1000.0).softmax(-1)[:, :-4],)


def attention_with_scaled_queries(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (softmax_by_exp2((q * 32**-0.5) @ k.transpose(-1, -2))[0] @ v,)


def attention_padded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scores = torch.nn.functional.pad((q * 32**-0.5) @ k.transpose(-1, -2), (0, 4), value=-1000.0)
    return (scores.softmax(-1)[..., :-4] @ v,)


def variance_in_two_passes(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    centered = x - x.sum(1, keepdim=True) * (1 / 500)
    return (centered.square().mean(1),)


def cumsum_one_after_the_other(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (torch.from_numpy(x.numpy().cumsum(1, dtype="float32")),)


def cumsum_in_bf16_parts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    parts = x.view(x.shape[0], -1, 100).cumsum(-1)
    before = (parts[..., -1].cumsum(-1) - parts[..., -1]).bfloat16().float()
    return ((parts + before.unsqueeze(-1)).view_as(x),)


def refused_kinds(source: str, kernel: Kernel) -> set[str]:
    """Kinds of values at which the kernel is refused, of all that are asked of the reference."""
    inferred = known(source)
    rng, found = random.Random(), set()
    with answered(replace(job_against(inferred, "", "kernel"), held_out=())) as job:
        operation = job.operation
        for kind in ("normal", *inferred.contract.kinds) * DRAWS:
            seed = rng.getrandbits(40)
            inputs = draw(operation, job.shape, "fp32", kind, seed=seed)
            results = judged_outputs(
                operation,
                Observed(Case(job.shape, kind, seed, inputs, ()), kernel(*inputs), 0),
                operation.oracle(*inputs),
                outputs_of(operation, operation.reference, inputs, ()),
                dtype="fp32",
                policy=job.policy,
            )
            if not all(one.within for one in results):
                found.add(kind)
    return found


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        *(
            (TOPK, topk_first),
            (TOPK, topk_last),
            (PLACES, places_first),
            (SORT, sort_from_behind),
            (ROUTER, router_on_logits),
        ),
        *((ARGMAX, argmax_first), (NORM, norm_in_two_passes), (SOFTMAX, softmax_by_exp2)),
        *((ATTENTION, attention_with_scaled_queries), (VARIANCE, variance_in_two_passes)),
        (CUMSUM, cumsum_one_after_the_other),
    ],
)
def test_a_right_kernel_is_right_at_every_kind(source: str, kernel: Kernel) -> None:
    assert refused_kinds(source, kernel) == set()


@pytest.mark.parametrize(
    ("source", "kernel", "kind"),
    [
        *(
            (TOPK, topk_same_place, "constant"),
            (PLACES, places_of_distinct_numbers, "sparse"),
            (TOPK, topk_padded, "zeros"),
            (ARGMAX, argmax_last, "constant"),
        ),
        *((SOFTMAX, softmax_padded, "far"), (ATTENTION, attention_padded, "far_rows")),
        (CUMSUM, cumsum_in_bf16_parts, "normal"),
    ],
)
def test_a_wrong_kernel_is_refused_where_its_fault_shows(source: str, kernel: Kernel, kind: str) -> None:
    assert kind in refused_kinds(source, kernel)
