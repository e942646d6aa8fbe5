"""Budgets of sessions: amounts of everything that is limited, and a tree of what was granted, reserved and settled.

Nothing is sent or run before its worst case is reserved. At each node, reserved and settled together never exceed
what was granted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from forge.domain.digest import Value

MOST = 2**53 - 1
"""Largest amount of one kind. Any reader of JSON holds it exactly."""
Count = Annotated[int, Field(ge=0, le=MOST)]
"""Amount of one kind."""
MILLION = 1_000_000
"""Number of tokens that a price is given for."""


class Amounts(Value):
    """An amount of each thing that a session may use up, in whole units."""

    micro_dollars: Count = 0
    """Money, in millionths of a dollar."""
    tokens: Count = 0
    """Tokens of a language model, prompt and answer together."""
    wall_ms: Count = 0
    """Time on the clock, in milliseconds."""
    device_ms: Count = 0
    """Time for which a candidate holds the device that judges it, in milliseconds."""
    candidates: Count = 0
    """Number of candidates that go through the whole pipeline."""

    def __add__(self, other: "Amounts") -> "Amounts":
        """Return the sum of each kind. A sum past MOST is MOST, so that no grant makes a session unreadable."""
        return _from({name: min(MOST, one + getattr(other, name)) for name, one in self.items()})

    def less(self, other: "Amounts") -> "Amounts":
        """Return what is left after `other` is taken away: none of a kind if there was less of it."""
        return _from({name: max(0, one - getattr(other, name)) for name, one in self.items()})

    def at_most(self, other: "Amounts") -> "Amounts":
        """Return the smaller amount of each kind."""
        return _from({name: min(one, getattr(other, name)) for name, one in self.items()})

    def at_least(self, other: "Amounts") -> "Amounts":
        """Return the larger amount of each kind."""
        return _from({name: max(one, getattr(other, name)) for name, one in self.items()})

    def lacking(self, needed: "Amounts") -> tuple[str, ...]:
        """Return the kinds of which there is less than `needed`."""
        return tuple(name for name, one in self.items() if one < getattr(needed, name))

    def items(self) -> Iterator[tuple[str, int]]:
        """Yield each kind with its amount."""
        for name in KINDS:
            yield name, getattr(self, name)

    def __bool__(self) -> bool:
        return any(one for _, one in self.items())

    def __str__(self) -> str:
        return ", ".join(f"{name}={one}" for name, one in self.items() if one) or "nothing"


NOTHING = Amounts()
"""Amounts of a request that costs nothing."""
KINDS = tuple(Amounts.model_fields)
"""Names of the kinds of amounts."""


def _from(amounts: Mapping[str, int]) -> Amounts:
    return Amounts(**amounts)


class Price(Value):
    """The price of a model, in millionths of a dollar for a million tokens."""

    model: Annotated[str, Field(min_length=1, max_length=100)]
    prompt_micro_dollars: Count
    answer_micro_dollars: Count

    def of(self, prompt_tokens: int, answer_tokens: int) -> Amounts:
        """Return the tokens and the micro-dollars of a request, rounded up; each amount is at most MOST."""
        parts = prompt_tokens * self.prompt_micro_dollars + answer_tokens * self.answer_micro_dollars
        tokens = prompt_tokens + answer_tokens
        return Amounts(micro_dollars=min(MOST, -(-parts // MILLION)), tokens=min(MOST, tokens))


def shortage(needed: Amounts, left: Amounts) -> str:
    """Say of which kinds there is less left than needed; empty if there is enough of each."""
    kinds = left.lacking(needed)
    wanted = ", ".join(f"{name}={getattr(needed, name)}" for name in kinds)
    has = ", ".join(f"{name}={getattr(left, name)}" for name in kinds)
    return f"{has} is left, expected at least {wanted}: the most that the next request may use" if kinds else ""


@dataclass(frozen=True, slots=True)
class BudgetNode:
    """One node: what it may use, what is reserved for open requests, and what was used."""

    granted: Amounts = NOTHING
    reserved: Amounts = NOTHING
    settled: Amounts = NOTHING

    @property
    def left(self) -> Amounts:
        """Return what may still be reserved."""
        return self.granted.less(self.reserved + self.settled)

    @property
    def holds(self) -> bool:
        """Return whether reserved and settled together are within what was granted."""
        return not self.granted.lacking(self.reserved + self.settled)


@dataclass(frozen=True, slots=True)
class BudgetTree:
    """The budget of a session, of its rounds, and of their requests. A tree that was returned never changes."""

    session: BudgetNode = BudgetNode()
    round_limit: Amounts | None = None
    """Largest amounts of one round. None: a round may use all that the session has."""
    rounds: Mapping[int, BudgetNode] = field(default_factory=dict)
    requests: Mapping[int, BudgetNode] = field(default_factory=dict)
    round_of: Mapping[int, int] = field(default_factory=dict)
    """Request -> its round."""

    def nodes(self) -> Iterator[BudgetNode]:
        """Yield every node."""
        yield self.session
        yield from self.rounds.values()
        yield from self.requests.values()

    def left_for(self, number: int) -> Amounts:
        """Return what a round may still reserve."""
        return self.session.left.at_most(self._round(number).left)

    def grant(self, more: Amounts) -> "BudgetTree":
        """Return the tree with more granted to the session."""
        session = replace(self.session, granted=self.session.granted + more)
        wider = {} if self.round_limit is not None else dict.fromkeys(self.rounds, session.granted)
        rounds = {one: replace(node, granted=wider.get(one, node.granted)) for one, node in self.rounds.items()}
        return replace(self, session=session, rounds=rounds)

    def reserve(self, number: int, request: int, worst: Amounts) -> "BudgetTree":
        """Return the tree with the worst case of a new request set aside; raise ValueError if there is less left."""
        short = shortage(worst, self.left_for(number))
        if short:
            raise ValueError(short)
        node = self._round(number)
        return replace(
            self,
            session=replace(self.session, reserved=self.session.reserved + worst),
            rounds={**self.rounds, number: replace(node, reserved=node.reserved + worst)},
            requests={**self.requests, request: BudgetNode(granted=worst, reserved=worst)},
            round_of={**self.round_of, request: number},
        )

    def uncovered(self, request: int, used: Amounts) -> Amounts:
        """Return the part of `used` for which neither the reservation nor what is left is enough.

        A clock can run past a reserved time, for example while a guest is ended.
        """
        most = self.requests[request].reserved + self.left_for(self.round_of[request])
        return used.less(most)

    def settle(self, request: int, used: Amounts) -> "BudgetTree":
        """Return the tree with a request's reservation replaced by what it used, as far as that is covered."""
        number, reserved = self.round_of[request], self.requests[request].reserved
        charged = used.less(self.uncovered(request, used))
        return replace(
            self,
            session=_settled(self.session, reserved, charged),
            rounds={**self.rounds, number: _settled(self.rounds[number], reserved, charged)},
            requests={**self.requests, request: BudgetNode(granted=reserved.at_least(charged), settled=charged)},
        )

    def _round(self, number: int) -> BudgetNode:
        return self.rounds.get(number) or BudgetNode(granted=self.round_limit or self.session.granted)


def _settled(node: BudgetNode, reserved: Amounts, charged: Amounts) -> BudgetNode:
    return replace(node, reserved=node.reserved.less(reserved), settled=node.settled + charged)
