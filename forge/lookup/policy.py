"""What the caller of a lookup accepts."""

from forge.lookup.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forge.errors import UsageError

REGIMES = ("cold", "resident")
FITS = ("exact", "covered", "between", "nearest")
"""Ways in which a shape fits a kernel, the best first. `between`: the kernel is proven on both sides of it."""
EXACT, COVERED, BETWEEN, NEAREST = range(len(FITS))
"""Places of these ways in FITS. A smaller one is a better fit."""
MOST_OCTAVES = 1_000_000
"""Largest number of octaves that a policy may allow between two shapes. Chosen; every shape is nearer, and a float
holds it exactly."""


class Policy(Frozen):
    """What the caller accepts. By default what is verified at, or proven on both sides of, the asked shape.

    `shape`: the loosest of exact, covered, between, nearest. `gpu`: exact, or family for another GPU of the same
    architecture; `gpu_arch` names the asked GPU's if nothing ever ran on one. `deprecated`: whether a
    deprecated kernel may answer. `max_octaves`: how far away the nearest measured shape may be. `abi_key`:
    the caller's; kernels built for another are passed over. `measured_since`: a day in UTC or a moment, as in
    2026-01-31 or 2026-01-31T12:00:00Z; kernels whose benchmark is older are passed over. `evidence`: provisional
    accepts a kernel without a second measurement, replicated asks for a second measurement that held.
    `regime`: how fast it is with operands that are cold, or resident in the last-level cache as in a decode step.
    """

    __slots__ = (
        "abi_key", "deprecated", "evidence", "gpu", "gpu_arch", "key", "loosest", "max_octaves", "measured_since",
        "regime", "shape",
    )  # fmt: skip

    shape: str
    gpu: str
    gpu_arch: str | None
    deprecated: bool
    max_octaves: float | None
    abi_key: str | None
    measured_since: str | None
    """Time in UTC, to the microsecond."""
    evidence: str
    regime: str
    loosest: int
    """The place of `shape` in FITS."""
    key: str
    """All fields as one text, equal for equal policies."""

    def __init__(
        self,
        *,
        shape: str = "between",
        gpu: str = "exact",
        gpu_arch: str | None = None,
        deprecated: bool = False,
        max_octaves: float | None = None,
        abi_key: str | None = None,
        measured_since: str | None = None,
        evidence: str = "provisional",
        regime: str = "cold",
    ) -> None:
        if shape not in FITS:
            raise _unknown("shape policy", shape, list(FITS))
        if gpu not in {"exact", "family"}:
            raise _unknown("gpu policy", gpu, ["exact", "family"])
        if evidence not in {"provisional", "replicated"}:
            raise _unknown("evidence policy", evidence, ["provisional", "replicated"])
        if regime not in REGIMES:
            raise _unknown("regime", regime, list(REGIMES))
        if type(deprecated) is not bool:
            raise _bad(f"deprecated policy {deprecated!r}: expected True or False")
        if max_octaves is not None and not (type(max_octaves) in {int, float} and 0 <= max_octaves <= MOST_OCTAVES):
            huge = type(max_octaves) is int and max_octaves.bit_length() > 64
            shown = "with so many digits" if huge else repr(max_octaves)
            raise _bad(f"max_octaves {shown}: expected a number from 0 to {MOST_OCTAVES}")
        for name, text in (("gpu_arch", gpu_arch), ("abi_key", abi_key)):
            if text is not None and type(text) is not str:
                raise _bad(f"{name} {text!r}: expected text")
        measured_since = None if measured_since is None else _parse_moment(measured_since)
        key = repr((shape, gpu, gpu_arch, deprecated, max_octaves, abi_key, measured_since, evidence, regime))
        self._fill(shape=shape, gpu=gpu, gpu_arch=gpu_arch, deprecated=deprecated, max_octaves=max_octaves)
        self._fill(abi_key=abi_key, measured_since=measured_since, loosest=FITS.index(shape), key=key)
        self._fill(evidence=evidence, regime=regime)

    def of_architecture(self, gpu_arch: str) -> "Policy":
        """Return the same policy for a GPU whose architecture the caller knows."""
        return Policy(
            shape=self.shape,
            gpu=self.gpu,
            gpu_arch=gpu_arch,
            deprecated=self.deprecated,
            max_octaves=self.max_octaves,
            abi_key=self.abi_key,
            measured_since=self.measured_since,
            evidence=self.evidence,
            regime=self.regime,
        )

    def __repr__(self) -> str:
        return f"Policy{self.key}"


STRICT = Policy()
"""Policy of a lookup that gives none, with the default of each field."""


def _unknown(kind: str, value: str, known: list[str]) -> "UsageError":
    from forge.errors import UnknownName

    return UnknownName(kind, value, known)


def _bad(found: str) -> "UsageError":
    from forge.errors import UsageError

    return UsageError(f"bad {found}")


def _parse_moment(untrusted: str) -> str:
    """Return a time as the ledger records it, so that texts have the order of their moments."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(untrusted)
        if len(untrusted) == len("2026-01-31"):
            moment = moment.replace(tzinfo=UTC)
        if moment.tzinfo is not None:
            return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    except (TypeError, ValueError, OverflowError):
        pass
    raise _bad(f"day {untrusted!r} of the oldest measurement: expected 2026-01-31 or 2026-01-31T12:00:00Z")
