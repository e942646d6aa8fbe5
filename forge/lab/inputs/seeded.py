"""Random numbers that follow from one seed, so that an examination can be run again with the same questions.

A number is a part of SHA-256 of the seed, a label and a counter. A candidate sees many numbers that follow from a
seed, and learns nothing about the others.
"""

import hashlib
import random
import secrets
from typing import Any

from forge.domain.input_kind import InputKind

SEED_BITS = 48
"""Number of bits of a seed: few enough for the 2^53 that any reader of JSON can hold, too many to try in a
verification."""
TURNS = 180
"""Number that the numbers of patterns divide: those of rows for up to four operands, and those of weights. Chosen
as the smallest such number: a larger one leaves fewer seeds."""
IN_TURN: frozenset[InputKind] = frozenset({"special_rows", "special_weights", "equal_weights"})
"""Kinds with patterns of their own, which follow from their seed's remainder."""
_DIGEST_BITS = 256
"""Number of bits of a SHA-256 digest."""


class Seeded(random.Random):
    """The generator of one seed and one label; the same two give the same numbers. Not safe across threads."""

    def __init__(self, seed: int, label: str) -> None:
        super().__init__(0)
        self._key = f"{seed:x} {label} ".encode()
        self._counter = 0

    def getrandbits(self, k: int) -> int:
        """Return a number of `k` random bits, from 0 to 2**k - 1."""
        digests = -(-k // _DIGEST_BITS)
        number = int.from_bytes(b"".join(self._digest() for _ in range(digests)), "big")
        return number >> (digests * _DIGEST_BITS - k)

    def random(self) -> float:
        """Return a number from 0 up to 1, exclusive."""
        return self.getrandbits(53) / 2**53

    def seed(self, *_: Any) -> None:  # Any: the parent class has it
        """Do nothing: the seed is fixed when the generator is made."""

    def _digest(self) -> bytes:
        self._counter += 1
        return hashlib.sha256(self._key + str(self._counter).encode()).digest()


class CaseSeeds:
    """Seeds of cases that take turns in their remainders, so that few draws have all patterns.

    Those of a kind with patterns of its own take turns by themselves, all others together.
    """

    def __init__(self, rng: Seeded) -> None:
        self._rng = rng
        self._turns: dict[InputKind | None, int] = {}

    def next(self, kind: InputKind) -> int:
        """Return a seed for the next case of a kind; the first remainder of those that take turns is random."""
        seed, own = self._rng.getrandbits(SEED_BITS), kind if kind in IN_TURN else None
        self._turns[own] = turn = self._turns.get(own, seed) + 1
        return seed - seed % TURNS + turn % TURNS


def new_seed() -> int:
    """Return a seed from the operating system's random numbers."""
    return secrets.randbits(SEED_BITS)
