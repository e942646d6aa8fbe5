"""Rates and times that calibrations measured or data sheets publish; no benchmark of a kernel holds a rate."""

import re
from dataclasses import dataclass

from forge.claims import named
from forge.claims.evidence import Calibration, Evidence, Measurement
from forge.claims.figure import TIME_NS, Figure
from forge.claims.names import Scope
from forge.claims.number import decimals_of, rounds_to, value_of
from forge.claims.verdict import Fault
from forge.platforms import Processor

_SHEET = re.compile(r"\bdata[- ]?sheets?\b", re.IGNORECASE)
_TIME_SLACK = 5e-4
"""A time that is written as 1.89 us was 1.8921: compared at its own digits, and this little beyond the last one."""


@dataclass(frozen=True)
class Judged:
    """One figure's faults, with the measurement that comes nearest to bearing it out."""

    figure: Figure
    faults: tuple[Fault, ...]
    measurement: Measurement | None
    rests_on: tuple[str, ...] = ()


def rate(figure: Figure, scope: Scope, evidence: Evidence) -> Judged:
    """A rate is what a calibration measured, or what a data sheet says; no benchmark holds one."""
    mentioned = named.processors(scope.text) or named.processors(scope.block)
    for seq in scope.cites.events:
        calibrated = evidence.calibrations.get(seq)
        if calibrated is None or not _one_of(figure, _measured(calibrated)):
            continue
        other = next((said for said, one in mentioned.items() if one is None or one.slug != calibrated.gpu), None)
        if other is not None:
            why = f"{other!r}: event {seq} is of {calibrated.gpu}"
            return Judged(figure, (Fault(problem="wrong_processor", why=why),), None)
        return Judged(figure, (), None, (f"event {seq}, {calibrated.event.TYPE}",))
    if _SHEET.search(scope.block):
        for one in mentioned.values():
            if one is not None and _one_of(figure, _published(one)):
                return Judged(figure, (), None, (f"data sheet: {one.source}",))
    if figure.end_to_end:
        why = f"{figure.said!r} is of more than one operation, and nothing larger was measured"
        return Judged(figure, (Fault(problem="beyond_operation", why=why),), None)
    why = (
        f"{figure.said!r}: a rate is said of a calibration's event or of a named data sheet, and of nothing else here"
    )
    return Judged(figure, (Fault(problem="no_measure", why=why),), None)


def _measured(calibrated: Calibration) -> list[float]:
    ceilings = calibrated.event.ceilings
    rates = [value for name, value in ceilings if name.endswith("_per_s") and isinstance(value, float)]
    return [*rates, *ceilings.flop_per_s.values()]


def _published(processor: Processor) -> list[float]:
    bandwidth = processor.peak_bandwidth_gb_s
    return [rate * 1e12 for rate in processor.peak_tflop_s.values()] + ([bandwidth * 1e9] if bandwidth else [])


def _one_of(figure: Figure, rates: list[float]) -> bool:
    unit = figure.value / value_of(figure.number) if value_of(figure.number) else 1.0
    return any(rounds_to(rate / unit, figure.number) for rate in rates)


def launch(figure: Figure, scope: Scope, evidence: Evidence) -> str | None:
    """The calibration that is cited and measured this time for a launch."""
    cited = {seq: evidence.calibrations[seq] for seq in scope.cites.events if seq in evidence.calibrations}
    unit = unit_ns(figure)
    return next(
        (
            f"event {seq}, {one.event.TYPE}"
            for seq, one in cited.items()
            if same_time((one.event.ceilings.launch_ns or 0.0) / unit, figure.number)
        ),
        None,
    )


def unit_ns(figure: Figure) -> float:
    """Nanoseconds of the unit that a time is given in."""
    return TIME_NS[re.split(r"[\d.,\s]+", figure.said)[-1].lower()]


def same_time(true: float, text: str) -> bool:
    """Whether a time, in its unit, is the one that is written, as far as that has digits."""
    return abs(true - value_of(text)) <= (0.5 + _TIME_SLACK) * 10.0 ** -decimals_of(text)
