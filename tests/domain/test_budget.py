"""Budgets: at each node of the tree, reserved and settled together never exceed what was granted."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from forge.domain.budget import KINDS, Amounts, BudgetTree, Price, shortage

AMOUNTS = st.builds(Amounts, **dict.fromkeys(KINDS, st.integers(0, 40)))


class Spending(RuleBasedStateMachine):
    """Requests of several rounds, open side by side, that use less or more than their worst case."""

    open_requests: Bundle[int] = Bundle("open_requests")

    @initialize(granted=AMOUNTS, limit=st.none() | AMOUNTS)
    def begin(self, granted: Amounts, limit: Amounts | None) -> None:
        self.tree = BudgetTree(round_limit=limit).grant(granted)
        self.granted, self.requests = granted, 0
        self.uncovered, self.used = Amounts(), Amounts()

    @rule(more=AMOUNTS)
    def grant(self, more: Amounts) -> None:
        self.tree = self.tree.grant(more)
        self.granted += more

    @rule(target=open_requests, number=st.integers(1, 3), worst=AMOUNTS)
    def reserve(self, number: int, worst: Amounts) -> object:
        short = shortage(worst, self.tree.left_for(number))
        if short:
            before = self.tree
            with pytest.raises(ValueError, match="is left, expected at least"):
                self.tree.reserve(number, self.requests + 1, worst)
            assert self.tree == before
            return multiple()
        self.requests += 1
        self.tree = self.tree.reserve(number, self.requests, worst)
        return self.requests

    @rule(request=consumes(open_requests), used=AMOUNTS)
    def settle(self, request: int, used: Amounts) -> None:
        reserved = self.tree.requests[request].reserved
        uncovered = self.tree.uncovered(request, used)
        assert not used.lacking(uncovered)
        assert not uncovered.less(used.less(reserved)), "a request within its worst case is covered in full"
        self.tree = self.tree.settle(request, used)
        self.uncovered, self.used = self.uncovered + uncovered, self.used + used

    @rule(request=consumes(open_requests))
    def lose(self, request: int) -> None:
        reserved = self.tree.requests[request].reserved
        self.tree = self.tree.settle(request, reserved)
        self.used += reserved

    @invariant()
    def every_node_holds(self) -> None:
        if not hasattr(self, "tree"):
            return
        assert all(node.holds for node in self.tree.nodes())
        assert self.tree.session.granted == self.granted
        assert self.tree.session.settled + self.uncovered == self.used, (
            "what was used is charged, or called uncovered"
        )
        for total, parts in (("reserved", "reserved"), ("settled", "settled")):
            summed = sum((getattr(node, parts) for node in self.tree.rounds.values()), Amounts())
            assert getattr(self.tree.session, total) == summed


Spending.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestSpending = Spending.TestCase


def test_a_shortage_names_each_kind_with_both_amounts() -> None:
    left = Amounts(tokens=10, wall_ms=5)
    assert shortage(Amounts(tokens=10), left) == ""
    said = shortage(Amounts(tokens=11, candidates=1, wall_ms=5), left)
    assert said.startswith("tokens=10, candidates=0 is left, expected at least tokens=11, candidates=1")


def test_a_round_reserves_no_more_than_its_own_limit() -> None:
    tree = BudgetTree(round_limit=Amounts(candidates=2)).grant(Amounts(candidates=5))
    tree = tree.reserve(1, 1, Amounts(candidates=2))
    with pytest.raises(ValueError, match="candidates=0 is left"):
        tree.reserve(1, 2, Amounts(candidates=1))
    assert tree.reserve(2, 2, Amounts(candidates=2)).session.left == Amounts(candidates=1)


def test_a_price_rounds_up_to_whole_micro_dollars() -> None:
    price = Price(model="m", prompt_micro_dollars=3_000_000, answer_micro_dollars=15_000_000)
    assert price.of(1000, 10) == Amounts(micro_dollars=3150, tokens=1010)
    assert Price(model="m", prompt_micro_dollars=1, answer_micro_dollars=0).of(1, 0).micro_dollars == 1
    assert Price(model="m", prompt_micro_dollars=0, answer_micro_dollars=0).of(7, 8) == Amounts(tokens=15)
