"""Random numbers that follow from one seed, so that an examination can be run again with the same questions.

A number is a part of SHA-256 of the seed, a label and a counter. A candidate sees many numbers that follow from a
seed, and learns nothing about the others.
"""

import hashlib
import random
import secrets
from typing import Any

SEED_BITS = 48
"""Number of bits of a seed: few enough for the 2^53 that any reader of JSON can hold, too many to try in a
verification."""
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


def new_seed() -> int:
    """Return a seed from the operating system's random numbers."""
    return secrets.randbits(SEED_BITS)
