"""Writes and reads raw samples: every attempt of a run.

All attempts of a run follow the same protocol. Samples of superseded protocols are read, but never joined with
others.
"""

import dataclasses
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
from forge.lab.timing.graph_replay import ReplaySamples, ResidentSamples
from forge.lab.timing.residency import Residence
from forge.lab.timing.slope import SlopeSamples


@dataclass(frozen=True)
class Samples:
    """All attempts of a run. A second attempt adds to the first and never replaces it."""

    attempts: tuple[SlopeSamples, ...] | tuple[ReplaySamples, ...] | tuple[ResidentSamples, ...]

    def per_call_ns(self, side: str) -> list[list[float]]:
        """Return a side's times per call: a list for each process pair of all attempts, a number for each round."""
        return [rounds for attempt in self.attempts for rounds in attempt.per_call_ns(side)]

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that every attempt measured."""
        return tuple(sorted(set.intersection(*(set(attempt.sides) for attempt in self.attempts))))

    @property
    def method(self) -> TimingAuthority:
        """Source of the times: the host's clock around calls, or the launcher."""
        return "host_slope" if isinstance(self.attempts[0], SlopeSamples) else "launch_plan"

    @property
    def residence(self) -> Residence | None:
        """Size of a call's operands beside the cache's; None for samples older than the resident regime."""
        newest = self.attempts[-1]
        return None if isinstance(newest, ResidentSamples) else newest.residence

    @property
    def resident(self) -> "Samples | None":
        """The samples of the resident regime, if every attempt has them."""
        replays = [one.resident for one in self.attempts if isinstance(one, ReplaySamples) and one.resident]
        slopes = [one.resident for one in self.attempts if isinstance(one, SlopeSamples) and one.resident]
        if replays and len(replays) == len(self.attempts):
            return Samples(tuple(replays))
        return Samples(tuple(slopes)) if slopes and len(slopes) == len(self.attempts) else None

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
        cold = all(value > 0 for side in timed for rounds in self.per_call_ns(side) for value in rounds)
        return cold and (self.resident is None or self.resident.usable)

    @classmethod
    def of(cls, attempt: SlopeSamples | ReplaySamples) -> "Samples":
        """Return the samples of one attempt, without those of earlier ones."""
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
        case "host_slope.v3" | "host_slope.v4":
            return Samples(tuple(map(_slope, attempts)))
        case "graph_replay.v1" | "graph_replay.v2" | "graph_replay.v3" | "graph_replay.v4":
            return Samples(tuple(map(_replays, attempts)))
        case other:
            raise BlobCorrupt(f"samples follow {other!r}, expected {SLOPE!r} or {REPLAY!r}")


def protocol_of(stored: bytes) -> str | None:
    """Return the protocol of stored samples; None if they don't name one."""
    protocol: str | None = orjson.loads(stored).get("protocol")
    return protocol


def _rendered(attempt: SlopeSamples | ReplaySamples | ResidentSamples) -> dict[str, object]:
    """Return one attempt; what was added for the resident regime is absent in older samples."""
    if isinstance(attempt, ResidentSamples):
        return {"calls": attempt.calls, **_rendered_pairs(attempt)}
    added: dict[str, object] = {}
    if attempt.residence is not None:
        added["residence"] = dataclasses.asdict(attempt.residence)
    if attempt.resident is not None:
        added["resident"] = _rendered(attempt.resident)
    if isinstance(attempt, ReplaySamples):
        return {
            **added,
            "calls": attempt.calls,
            "host_ratio": attempt.host_ratio,
            "sets": attempt.sets,
            "set_bytes": attempt.set_bytes,
            "states": [state.model_dump(mode="json") for state in attempt.states],
            "blocks": attempt.blocks,
            "dropped": attempt.dropped,
            "device_ns": attempt.device_ns,
            **_rendered_pairs(attempt),
        }
    return {
        **added,
        "calls": attempt.calls,
        "pairs": [[dict(sorted(measured.items())) for measured in rounds] for rounds in attempt.pairs],
    }


def _rendered_pairs(attempt: ReplaySamples | ResidentSamples) -> dict[str, object]:
    """Return the sides, and their times in that order by pair and round."""
    pairs = [[[measured[side] for side in attempt.sides] for measured in pair] for pair in attempt.pairs]
    return {"sides": attempt.sides, "pairs": pairs}


def _slope(attempt: dict[str, object]) -> SlopeSamples:
    pairs: list[list[dict[str, int]]] = attempt["pairs"]  # type: ignore[assignment]  # rendered above
    resident: dict[str, object] | None = attempt.get("resident")  # type: ignore[assignment]  # rendered above
    return SlopeSamples(
        calls=int(str(attempt["calls"])),
        pairs=tuple(map(tuple, pairs)),
        residence=_residence(attempt),
        resident=None if resident is None else _slope(resident),
    )


def _residence(attempt: dict[str, object]) -> Residence | None:
    found: dict[str, object] | None = attempt.get("residence")  # type: ignore[assignment]  # rendered above
    return None if found is None else Residence(**found)  # type: ignore[arg-type]  # as above


def _resident_replays(attempt: dict[str, object]) -> ResidentSamples | None:
    found: dict[str, object] | None = attempt.get("resident")  # type: ignore[assignment]  # rendered above
    if found is None:
        return None
    calls: dict[str, int] = found["calls"]  # type: ignore[assignment]  # rendered above
    return ResidentSamples(calls=calls, pairs=_pairs(found))


def _pairs(attempt: dict[str, object]) -> tuple[tuple[dict[str, int], ...], ...]:
    sides: list[str] = attempt["sides"]  # type: ignore[assignment]  # rendered above
    pairs: list[list[list[int]]] = attempt["pairs"]  # type: ignore[assignment]  # as above
    return tuple(tuple(dict(zip(sides, times, strict=True)) for times in rounds) for rounds in pairs)


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
    return ReplaySamples(
        calls=attempt["calls"],  # type: ignore[arg-type]  # as above
        pairs=_pairs(attempt),
        host_ratio=tuple(attempt["host_ratio"]),  # type: ignore[arg-type]  # as above
        sets=int(str(attempt["sets"])),
        set_bytes=int(str(attempt["set_bytes"])),
        states=tuple(map(DeviceState.model_validate, attempt["states"])),  # type: ignore[call-overload]  # as above
        blocks=int(str(attempt["blocks"])),
        dropped=int(str(attempt["dropped"])),
        device_ns=int(str(attempt["device_ns"])),
        residence=_residence(attempt),
        resident=_resident_replays(attempt),
    )
