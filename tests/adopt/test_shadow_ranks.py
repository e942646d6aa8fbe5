"""Shadow calls of operations that choose entries by rank: near ties may change places; wrong weights are found."""

import pytest
import torch

from forge.adopt.described import OperationForm, parse_described
from forge.adopt.shadow import RankedRows, difference
from forge.domain.digest import canonical
from forge.operations import find_operation
from forge.operations.description import description

TOKENS, EXPERTS = 400, 64
LOGITS = torch.randn(TOKENS, EXPERTS, generator=torch.Generator().manual_seed(3))
BIAS = torch.randn(EXPERTS, generator=torch.Generator().manual_seed(4)) * 0.1


def form(op: str) -> OperationForm:
    return parse_described(op, canonical(description(find_operation(op))))


def gate(chosen: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gate's answer for chosen experts."""
    scores = LOGITS.sigmoid().gather(-1, chosen)
    return {"weights": scores / scores.sum(-1, keepdim=True) * 2.5, "indices": chosen.to(torch.int32)}


def compared(mine: torch.Tensor, theirs: torch.Tensor) -> dict[str, object] | None:
    return difference(form("moe_fused_gate"), [LOGITS, BIAS, 2.5], gate(mine), gate(theirs))


ORDER = (LOGITS.sigmoid() + BIAS).argsort(-1, descending=True)
RIGHT = ORDER[:, :8]


def test_near_ties_may_change_places_in_every_row():
    assert compared(RIGHT[:, [1, 0, 2, 3, 4, 6, 5, 7]], RIGHT) is None


def test_another_choice_at_the_last_rank_is_allowed_in_few_rows_and_no_more():
    for rows, allowed in ((1, True), (4, True), (5, False), (TOKENS, False)):
        other = RIGHT.clone()
        other[:rows, 7] = ORDER[:rows, 8]
        assert (compared(other, RIGHT) is None) is allowed, rows


def test_other_choices_in_calls_of_one_row_add_up():
    other = RIGHT.clone()
    other[:, 7] = ORDER[:, 8]
    rows, breaches = RankedRows(), []
    for row in range(3):
        one = slice(row, row + 1)
        mine, theirs = ({name: value[one] for name, value in gate(side).items()} for side in (other, RIGHT))
        breach = difference(form("moe_fused_gate"), [LOGITS[one], BIAS, 2.5], mine, theirs, rows)
        breaches.append(breach is not None)
    assert breaches == [False, True, True]


def test_two_other_entries_in_one_row_are_no_near_tie():
    other = RIGHT.clone()
    other[0, 6:] = ORDER[0, 8:10]
    assert compared(other, RIGHT) is not None


@pytest.mark.parametrize("row", [0, TOKENS - 1])
def test_a_wrong_weight_is_a_breach_whether_or_not_places_changed(row):
    for order in ([0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 2, 3, 4, 5, 6, 7]):
        mine, theirs = gate(RIGHT[:, order]), gate(RIGHT)
        mine["weights"][row, 2] *= 1.01
        breach = difference(form("moe_fused_gate"), [LOGITS, BIAS, 2.5], mine, theirs)
        assert breach is not None
        assert breach["output"] == "weights"


def test_a_weight_that_is_not_a_number_is_a_breach():
    mine, theirs = gate(RIGHT), gate(RIGHT)
    mine["weights"][5, 3] = float("nan")
    assert difference(form("moe_fused_gate"), [LOGITS, BIAS, 2.5], mine, theirs) is not None


def test_equal_values_may_come_from_any_of_their_entries():
    x = torch.tensor([[2.0, 1.0, 1.0, 1.0]]).repeat(9, 3)
    values, first = x.topk(8, -1)
    mine = {"values": values, "indices": first.flip(-1).to(torch.int32)}
    theirs = {"values": values, "indices": first.to(torch.int32)}
    assert difference(form("topk_per_row"), [x], mine, theirs) is None
