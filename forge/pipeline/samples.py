"""Writes and reads raw samples: every attempt of a run.

All attempts of a run follow the same protocol. Samples of superseded protocols are read, but never joined with
others.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from forge.domain.device import DeviceState
from forge.domain.digest import canonical
from forge.domain.policy import TimingAuthority
from forge.domain.protocol import REPLAY, SLOPE
from forge.errors import BlobCorrupt
from forge.lab.timing.cpu_processes import HARNESS
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.slope import SlopeSamples


@dataclass(frozen=True)
class Samples:
    """All attempts of a run. A second attempt adds to the first and never replaces it."""

    attempts: tuple[SlopeSamples, ...] | tuple[ReplaySamples, ...]

    def per_call_ns(self, side: str) -> list[list[float]]:
        """Return a side's times per call: a list for each process pair of all attempts, a number for each round."""
        return [rounds for attempt in self.attempts for rounds in attempt.per_call_ns(side)]

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that every attempt measured."""
        return tuple(sorted(set.intersection(*(set(attempt.sides) for attempt in self.attempts))))

    @property
    def method(self) -> TimingAuthority:
        """Whose word the times are."""
        return "launch_plan" if isinstance(self.attempts[0], ReplaySamples) else "host_slope"

    @property
    def protocol(self) -> str:
        """Name of the protocol that they were taken by."""
        return REPLAY if self.method == "launch_plan" else SLOPE

    @property
    def usable(self) -> bool:
        """True if every time is above zero. Otherwise the noise is larger than the work.

        The path's own time isn't checked, because it is close to zero.
        """
        timed = [side for side in self.sides if side != HARNESS]
        return all(value > 0 for side in timed for rounds in self.per_call_ns(side) for value in rounds)

    @classmethod
    def of(cls, attempt: SlopeSamples | ReplaySamples) -> "Samples":
        """One attempt alone."""
        match attempt:
            case SlopeSamples():
                return cls((attempt,))
            case ReplaySamples():
                return cls((attempt,))

    def with_one_more(self, attempt: SlopeSamples | ReplaySamples) -> "Samples":
        """Return these attempts and one more. If that is of the other protocol, return it alone."""
        match attempt:
            case SlopeSamples():
                return Samples((*(one for one in self.attempts if isinstance(one, SlopeSamples)), attempt))
            case ReplaySamples():
                return Samples((*(one for one in self.attempts if isinstance(one, ReplaySamples)), attempt))


@dataclass(frozen=True)
class Taken:
    """The samples that a run's attempts have taken so far."""

    samples: Samples
    confirmation: Samples | None


def render_samples(samples: Samples, confirmation: Samples | None = None) -> bytes:
    """Return every sample as JSON, in nanoseconds, by attempt, pair, round and side."""
    document: dict[str, object] = {
        "protocol": samples.protocol,
        "attempts": [_rendered(attempt) for attempt in samples.attempts],
    }
    if confirmation is not None:
        document["confirmation"] = [_rendered(attempt) for attempt in confirmation.attempts]
    return canonical(document)


def parse_samples(stored: bytes) -> Taken:
    """Read stored samples; raise BlobCorrupt for an unknown protocol."""
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
    """Return the protocol of stored samples; None if they don't name one."""
    protocol: str | None = orjson.loads(stored).get("protocol")
    return protocol


def _rendered(attempt: SlopeSamples | ReplaySamples) -> dict[str, object]:
    if isinstance(attempt, ReplaySamples):
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


def _slope(attempt: dict[str, object]) -> SlopeSamples:
    pairs: list[list[dict[str, int]]] = attempt["pairs"]  # type: ignore[assignment]  # rendered above
    return SlopeSamples(calls=int(str(attempt["calls"])), pairs=tuple(map(tuple, pairs)))


def _earlier_slope(attempt: dict[str, object]) -> SlopeSamples:
    """Read an earlier slope: each side's longer release minus the median of its shorter ones; the path cancels."""
    pairs: list[list[dict[str, list[int]]]] = attempt["pairs"]  # type: ignore[assignment]  # as it was rendered
    return SlopeSamples(
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


def _replays(attempt: dict[str, object]) -> ReplaySamples:
    sides: list[str] = attempt["sides"]  # type: ignore[assignment]  # rendered above
    pairs: list[list[list[int]]] = attempt["pairs"]  # type: ignore[assignment]  # as above
    return ReplaySamples(
        calls=attempt["calls"],  # type: ignore[arg-type]  # as above
        pairs=tuple(tuple(dict(zip(sides, times, strict=True)) for times in rounds) for rounds in pairs),
        host_ratio=tuple(attempt["host_ratio"]),  # type: ignore[arg-type]  # as above
        sets=int(str(attempt["sets"])),
        set_bytes=int(str(attempt["set_bytes"])),
        states=tuple(map(DeviceState.model_validate, attempt["states"])),  # type: ignore[call-overload]  # as above
        blocks=int(str(attempt["blocks"])),
        dropped=int(str(attempt["dropped"])),
        device_ns=int(str(attempt["device_ns"])),
    )
