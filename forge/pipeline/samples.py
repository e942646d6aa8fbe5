"""Raw samples as they are stored and read again: every attempt of a run, none left out."""

from dataclasses import dataclass

import orjson

from forge.domain.digest import canonical
from forge.errors import BlobCorrupt
from forge.lab.timing import Attempt, Release

PROTOCOL = "host_slope.v1"


@dataclass(frozen=True)
class Samples:
    """The union of a run's attempts: a second one adds to the first and never replaces it."""

    attempts: tuple[Attempt, ...]

    def per_call_ns(self, side: str) -> list[list[float]]:
        """A side's time per call, by process pair (of all attempts) and round."""
        return [rounds for attempt in self.attempts for rounds in attempt.per_call_ns(side)]

    @property
    def sides(self) -> tuple[str, ...]:
        """What was measured."""
        return tuple(sorted(self.attempts[0].pairs[0][0]))

    @property
    def usable(self) -> bool:
        """Whether every slope is above zero; otherwise the noise is larger than the work."""
        return all(value > 0 for side in self.sides for rounds in self.per_call_ns(side) for value in rounds)


def render_samples(samples: Samples) -> bytes:
    """Every sample as JSON: times of the two releases, in nanoseconds, by attempt, pair, round and side."""
    return canonical(
        {
            "protocol": PROTOCOL,
            "attempts": [
                {
                    "few_calls": attempt.few,
                    "many_calls": attempt.many,
                    "pairs": [
                        [{side: [r.few_ns, r.many_ns] for side, r in sorted(measured.items())} for measured in rounds]
                        for rounds in attempt.pairs
                    ],
                }
                for attempt in samples.attempts
            ],
        }
    )


def parse_samples(stored: bytes) -> Samples:
    """Read stored samples; raise BlobCorrupt for another protocol."""
    document = orjson.loads(stored)
    if document.get("protocol") != PROTOCOL:
        raise BlobCorrupt(f"samples follow {document.get('protocol')!r}, expected {PROTOCOL!r}")
    return Samples(
        tuple(
            Attempt(
                few=attempt["few_calls"],
                many=attempt["many_calls"],
                pairs=tuple(
                    tuple({side: Release(*times) for side, times in measured.items()} for measured in rounds)
                    for rounds in attempt["pairs"]
                ),
            )
            for attempt in document["attempts"]
        )
    )
