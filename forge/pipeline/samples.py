"""Raw samples as they are stored and read again: every attempt of a run, none left out.

Two protocols: the host's clock over releases, and windows of graph replays on a device. A run's attempts follow one.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from forge.domain.device import DeviceState
from forge.domain.digest import canonical
from forge.domain.policy import TimingAuthority
from forge.errors import BlobCorrupt
from forge.lab.timing.cpu_processes import HARNESS
from forge.lab.timing.graph_replay import Replays
from forge.lab.timing.slope import Attempt

SLOPE, REPLAY = "host_slope.v3", "graph_replay.v3"
"""Names of the protocols. Earlier ones are still read, and joined with nothing.

The first slopes had all baselines in one process. The second subtracted a shorter release of the same side, which a
candidate can lengthen. The first replays used sets several times in a window, and the windows of the second waited
for what was written before them.
"""


@dataclass(frozen=True)
class Samples:
    """The union of a run's attempts: a second one adds to the first and never replaces it."""

    attempts: tuple[Attempt, ...] | tuple[Replays, ...]

    def per_call_ns(self, side: str) -> list[list[float]]:
        """A side's time per call, by process pair (of all attempts) and round."""
        return [rounds for attempt in self.attempts for rounds in attempt.per_call_ns(side)]

    @property
    def sides(self) -> tuple[str, ...]:
        """What was measured in every attempt."""
        return tuple(sorted(set.intersection(*(set(attempt.sides) for attempt in self.attempts))))

    @property
    def method(self) -> TimingAuthority:
        """Whose word the times are."""
        return "launch_plan" if isinstance(self.attempts[0], Replays) else "host_slope"

    @property
    def usable(self) -> bool:
        """Whether every time is above zero; otherwise the noise is larger than the work.

        The path's own time, by itself, is close to nothing.
        """
        timed = [side for side in self.sides if side != HARNESS]
        return all(value > 0 for side in timed for rounds in self.per_call_ns(side) for value in rounds)

    @classmethod
    def of(cls, attempt: Attempt | Replays) -> "Samples":
        """One attempt alone."""
        match attempt:
            case Attempt():
                return cls((attempt,))
            case Replays():
                return cls((attempt,))

    def with_one_more(self, attempt: Attempt | Replays) -> "Samples":
        """These attempts and another; one of the other protocol begins anew, for the two can't be compared."""
        match attempt:
            case Attempt():
                return Samples((*(one for one in self.attempts if isinstance(one, Attempt)), attempt))
            case Replays():
                return Samples((*(one for one in self.attempts if isinstance(one, Replays)), attempt))


@dataclass(frozen=True)
class Taken:
    """What a run's attempts have measured so far."""

    samples: Samples
    confirmation: Samples | None


def render_samples(samples: Samples, confirmation: Samples | None = None) -> bytes:
    """Every sample as JSON, in nanoseconds, by attempt, pair, round and side."""
    document: dict[str, object] = {
        "protocol": REPLAY if samples.method == "launch_plan" else SLOPE,
        "attempts": [_rendered(attempt) for attempt in samples.attempts],
    }
    if confirmation is not None:
        document["confirmation"] = [_rendered(attempt) for attempt in confirmation.attempts]
    return canonical(document)


def parse_samples(stored: bytes) -> Taken:
    """Read stored samples; raise BlobCorrupt for another protocol."""
    document = orjson.loads(stored)
    confirmation = document.get("confirmation")
    return Taken(
        samples=_samples(document.get("protocol"), document.get("attempts", ())),
        confirmation=None if confirmation is None else _samples(document.get("protocol"), confirmation),
    )


def _samples(protocol: object, attempts: Sequence[dict[str, object]]) -> Samples:
    match protocol:
        case "host_slope.v1" | "host_slope.v2":
            return Samples(tuple(map(_earlier_slope, attempts)))
        case "host_slope.v3":
            return Samples(tuple(map(_slope, attempts)))
        case "graph_replay.v1" | "graph_replay.v2" | "graph_replay.v3":
            return Samples(tuple(map(_replays, attempts)))
        case other:
            raise BlobCorrupt(f"samples follow {other!r}, expected {SLOPE!r} or {REPLAY!r}")


def protocol_of(stored: bytes) -> str | None:
    """What stored samples were taken by; None where they don't say."""
    protocol: str | None = orjson.loads(stored).get("protocol")
    return protocol


def _rendered(attempt: Attempt | Replays) -> dict[str, object]:
    if isinstance(attempt, Replays):
        return {
            "calls": attempt.calls,
            "host_ratio": attempt.host_ratio,
            "sets": attempt.sets,
            "set_bytes": attempt.set_bytes,
            "states": [state.model_dump(mode="json") for state in attempt.states],
            "blocks": attempt.blocks,
            "dropped": attempt.dropped,
            "device_ns": attempt.device_ns,
            "sides": attempt.sides,
            "pairs": [[[measured[side] for side in attempt.sides] for measured in pair] for pair in attempt.pairs],
        }
    return {
        "calls": attempt.calls,
        "pairs": [[dict(sorted(measured.items())) for measured in rounds] for rounds in attempt.pairs],
    }


def _slope(attempt: dict[str, object]) -> Attempt:
    pairs: list[list[dict[str, int]]] = attempt["pairs"]  # type: ignore[assignment]  # rendered above
    return Attempt(calls=int(str(attempt["calls"])), pairs=tuple(map(tuple, pairs)))


def _earlier_slope(attempt: dict[str, object]) -> Attempt:
    """What each side's longer release took beyond the median of its own shorter ones; the path falls out of that."""
    pairs: list[list[dict[str, list[int]]]] = attempt["pairs"]  # type: ignore[assignment]  # as it was rendered
    return Attempt(
        calls=int(str(attempt["many_calls"])) - int(str(attempt["few_calls"])),
        pairs=tuple(
            tuple(
                {
                    side: many - statistics.median(measured[side][0] for measured in rounds)
                    for side, (_, many) in one.items()
                    if side != HARNESS
                }
                for one in rounds
            )
            for rounds in pairs
        ),
    )


def _replays(attempt: dict[str, object]) -> Replays:
    sides: list[str] = attempt["sides"]  # type: ignore[assignment]  # rendered above
    pairs: list[list[list[int]]] = attempt["pairs"]  # type: ignore[assignment]  # likewise
    return Replays(
        calls=attempt["calls"],  # type: ignore[arg-type]  # likewise
        pairs=tuple(tuple(dict(zip(sides, times, strict=True)) for times in rounds) for rounds in pairs),
        host_ratio=tuple(attempt["host_ratio"]),  # type: ignore[arg-type]  # likewise
        sets=int(str(attempt["sets"])),
        set_bytes=int(str(attempt["set_bytes"])),
        states=tuple(map(DeviceState.model_validate, attempt["states"])),  # type: ignore[call-overload]  # likewise
        blocks=int(str(attempt["blocks"])),
        dropped=int(str(attempt["dropped"])),
        device_ns=int(str(attempt["device_ns"])),
    )
