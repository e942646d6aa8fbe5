"""Checks one sentence against the evidence that it names. A sentence without faults may be said."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from forge.claims import named
from forge.claims.evidence import Calibration, ClaimEvidence, Measurement
from forge.claims.forms import Kind
from forge.claims.names import at_named_shapes, beyond, unnamed
from forge.claims.number import decimals_of, rounds_to, value_of
from forge.claims.of_models import faults_of_model
from forge.claims.ratio import bears_out, faults_of_ratio
from forge.claims.sentence import REGIME_WORDS, shape_written
from forge.claims.spoken import Sentence, SpokenFigure
from forge.claims.verdict import Fault, Problem, fault
from forge.domain.policy import Regime
from forge.platforms import PROCESSORS, Processor

TIME_SLACK_DIGITS = 0.5005
"""Largest distance of a written time from the true one, as a share of its last digit. Half a digit is rounding; the
rest is for the decimal form of a measured time."""
MOST_ROUNDING = 0.05
"""Largest share by which rounding may better a time or a rate: 0.8 PFLOP/s isn't 1 PFLOP/s. Chosen."""
_RESIDENT = re.compile(r"\bresident operands\b", re.I)
"""Words that make a sentence one about operands in the last-level cache."""
_PERCENTILE = re.compile(r"\bp[19]0\b|percentile", re.I)
"""Words that make a time one of the distribution's, beside its median."""
_NEVER: dict[Kind, tuple[Problem, str]] = {
    "unreadable": ("unreadable", "{} can't be read: say it as a ratio (`1.29x`), with its interval and its event"),
    "boast": ("no_measure", "no event can bear out {}: name a ratio, its interval and its event"),
}
"""Kinds of figures that no evidence bears out, and why."""
Faults = Iterator[Fault]


@dataclass(frozen=True)
class JudgedFigure:
    """The faults of one figure, and the measurement that it rests on or is nearest to."""

    figure: SpokenFigure
    faults: tuple[Fault, ...]
    measurement: Measurement | None = None
    rests_on: tuple[str, ...] = ()


def judge(sentence: Sentence, evidence: ClaimEvidence) -> tuple[JudgedFigure, ...]:
    """Check every figure of a sentence against the evidence that its passage cites."""
    models = [seq for seq in sentence.cites.events if seq in evidence.models]
    if models:
        return tuple(_of_models(figure, sentence, models, evidence) for figure in sentence.figures)
    cited, unknown = _resolved(sentence.cites, evidence)
    regime: Regime = "resident" if _RESIDENT.search(sentence.text) else "cold"
    found = at_named_shapes(sentence, tuple(one for one in cited if one.regime == regime))
    if cited and not found:
        unknown += (fault("no_evidence", f"what it names wasn't measured {REGIME_WORDS[regime]}"),)
    ids = [(match.start(), match[0]) for match in named.KERNEL_ID.finditer(sentence.text)]
    judged: list[JudgedFigure] = []
    about, since = found, 0
    figures = sorted(sentence.figures, key=lambda one: one.start)
    for figure in figures:
        # A figure is said of the kernels that are named between the last figure and this one; the last one also of
        # those behind it.
        between = {kernel_id for start, kernel_id in ids if since <= start < figure.start}
        if between:
            about = tuple(one for one in found if one.kernel_id in between)
            since = figure.end
        if figure is figures[-1]:
            behind = {kernel_id for start, kernel_id in ids if start > figure.start}
            behind -= {one.kernel_id for one in about}
            about += tuple(one for one in found if one.kernel_id in behind)
        judged.append(_judged(figure, sentence, about, unknown, evidence))
    return tuple(judged)


def _of_models(figure: SpokenFigure, sentence: Sentence, seqs: list[int], evidence: ClaimEvidence) -> JudgedFigure:
    """Check a figure against the measurements of models that the sentence cites. It must hold for each."""
    found = [one for seq in seqs for one in faults_of_model(figure, sentence, seq, evidence.models[seq])]
    rests_on = tuple(f"event {seq}, ModelMeasured" for seq in seqs)
    return JudgedFigure(figure, tuple(dict.fromkeys(found)), rests_on=rests_on)


def _resolved(cites: named.Cited, evidence: ClaimEvidence) -> tuple[tuple[Measurement, ...], tuple[Fault, ...]]:
    """Return the measurements that are cited, and a fault for each citation that leads nowhere."""
    own = {seq: evidence.by_event(seq) for seq in cites.events}
    of_kernels = {kernel_id: evidence.by_kernel(kernel_id) for kernel_id in cites.kernels}
    wrong = [f"this ledger has no kernel {kernel_id}" for kernel_id, points in of_kernels.items() if not points]
    for seq, points in own.items():
        if seq not in evidence.known:
            wrong.append(f"event {seq} is none that holds or ends a measurement here")
        elif points and cites.kernels and not any(one.kernel_id in cites.kernels for one in points):
            wrong.append(f"event {seq} isn't about {', '.join(cites.kernels)}")
    # By identity in memory: comparing thousands with each other takes minutes.
    found = {id(one): one for points in (*of_kernels.values(), *own.values()) for one in points}
    holds = any(
        evidence.by_event(seq) or seq in evidence.calibrations or seq in evidence.ends for seq in cites.events
    )
    if found and cites.events and not wrong and not holds:
        wrong.append(f"event {cites.events[0]} holds no measurement: cite the benchmark's")
    return tuple(found.values()), tuple(fault("unknown_evidence", why) for why in wrong)


def _judged(
    figure: SpokenFigure,
    sentence: Sentence,
    found: tuple[Measurement, ...],
    unknown: tuple[Fault, ...],
    evidence: ClaimEvidence,
) -> JudgedFigure:
    """Check one figure. It holds only if it holds for every measurement that it rests on."""
    said, larger = repr(figure.said), tuple(beyond(sentence, found))
    if figure.kind == "rate":
        return _rate(figure, sentence, evidence, larger)
    if figure.kind in _NEVER:
        problem, why = _NEVER[figure.kind]
        return JudgedFigure(figure, (fault(problem, why.format(said)), *larger), found[0] if found else None)
    if figure.kind == "time" and (calibrated := _launch(figure, sentence, evidence)):
        return JudgedFigure(figure, (), rests_on=(calibrated,))
    if not found:
        lacks = "what it names holds no time" if sentence.cites else "it names no kernel and no event"
        return JudgedFigure(figure, (*(unknown or (fault("no_evidence", f"{said}: {lacks}"),)), *larger))
    tried = [(tuple(_faults(figure, sentence, one)), one) for one in found]
    faults, nearest = max(tried, key=lambda pair: len(pair[0]))
    return JudgedFigure(figure, unknown + faults, nearest, (f"event {nearest.seq}, {nearest.event_type}",))


def _faults(figure: SpokenFigure, sentence: Sentence, measured: Measurement) -> Faults:
    """Yield the faults of one figure against one measurement."""
    yield from _standing(sentence, measured)
    if figure.kind == "ratio":
        yield from _ratio(figure, sentence, measured)
    elif figure.kind == "floor_share":
        yield from _floor_share(figure, sentence, measured)
    else:
        yield from _time(figure, sentence, measured)
    if figure.best_case:
        yield fault("best_case", f"{figure.said!r} is said of the best of several: name the one, or a lower end")
    yield from unnamed(sentence, measured)
    yield from beyond(sentence, (measured,))


def _standing(sentence: Sentence, measured: Measurement) -> Faults:
    ended, text = measured.ended, sentence.text.lower()
    if ended is not None and not (ended.word in text and ended.seq in sentence.cites.events):
        yield fault("taken_back", f"it was {ended.word} ({ended.why}): event {ended.seq}, {ended.event_type}")
    if measured.no_verdict is not None:
        yield fault("no_verdict", f"event {measured.seq} ended without a verdict: {measured.no_verdict}")
    if measured.simulated and "simulated" not in text:
        yield fault("simulated", f"event {measured.verified_seq} is of a simulated run, and isn't called one")


def baseline_of(figure: SpokenFigure, sentence: Sentence) -> named.BaselineNamed | None:
    """Return the baseline of a ratio: the first named after it, the last before it, or the passage's only one."""
    mentioned = named.baselines(sentence.text)
    after = [one for one in mentioned if one.start >= figure.start]
    if mentioned:
        return after[0] if after else mentioned[-1]
    elsewhere = {one.kind: one for one in named.baselines(sentence.block)}
    return next(iter(elsewhere.values())) if len(elsewhere) == 1 else None


def _ratio(figure: SpokenFigure, sentence: Sentence, measured: Measurement) -> Faults:
    against = baseline_of(figure, sentence)
    kinds = ", ".join(named.baseline_name(one.baseline) for one in measured.speedups)
    if against is None or against.kind == "pytorch":
        said = "no baseline" if against is None else f"{against.said!r}, which isn't one baseline"
        yield fault("no_baseline", f"{figure.said!r} names {said}: measured were {kinds}")
        return
    speedup = measured.over(against.kind)
    if speedup is None:
        yield fault("wrong_baseline", f"{against.said!r} wasn't measured here: {kinds} were")
        return
    that = next((one.baseline for one in measured.speedups if bears_out(one.interval, figure)), speedup.baseline)
    if that != speedup.baseline and not bears_out(speedup.interval, figure):
        yield fault("wrong_baseline", f"{figure.said!r} is the ratio over {named.baseline_name(that)}")
    yield from faults_of_ratio(figure, speedup.interval, speedup.baseline)
    fastest = measured.fastest
    beside = {speedup.baseline, *(one.kind for one in named.baselines(sentence.block))}
    if fastest is not None and fastest not in beside:
        why = f"{named.baseline_name(fastest)} was harder to beat, and isn't named beside it"
        yield fault("weak_baseline", why)


def _floor_share(figure: SpokenFigure, sentence: Sentence, measured: Measurement) -> Faults:
    """Check a share of the floor: the candidate's, or that of a baseline which is named before it."""
    before = {one.kind for one in named.baselines(sentence.text) if one.start < figure.start}
    floor = measured.first.floor_ns
    shares = [measured.floor_share]
    shares += [floor / one.baseline_median_ns for one in measured.speedups if one.baseline in before]
    if not any(rounds_to(100 * share, figure.number) for share in shares):
        problem: Problem = "overstated" if figure.value > 100 * max(shares) else "not_measured"
        yield fault(problem, f"{figure.said!r}: measured were {measured.floor_share:.0%} of the floor")


def _time(figure: SpokenFigure, sentence: Sentence, measured: Measurement) -> Faults:
    text, named_kinds = sentence.text.lower(), {one.kind for one in named.baselines(sentence.block)}
    known = [measured.first.floor_ns] if "floor" in text else []
    known += [measured.timing.harness_ns] if "path" in text else []
    for side in (measured.first, measured.first.confirmation):
        if side is not None:
            known += [side.candidate.median_ns]
            known += [side.candidate.p10_ns, side.candidate.p90_ns] if _PERCENTILE.search(text) else []
            known += [one.baseline_median_ns for one in side.speedups if one.baseline in named_kinds]
    if any(_same_time(true, figure) for true in known):
        return
    problem: Problem = "overstated" if figure.value < measured.candidate.median_ns else "not_measured"
    why = f"{figure.said!r}: its median was {measured.candidate.median_ns / 1000:.3f} us per call"
    yield fault(problem, f"{why} at {shape_written(measured.timing.shape)}")


def _same_time(true_ns: float, figure: SpokenFigure) -> bool:
    """Return whether a time is the true one, rounded in its last digit; rounded to nothing it says nothing."""
    true, said = true_ns / figure.unit, value_of(figure.number)
    slack = TIME_SLACK_DIGITS * 10.0 ** -decimals_of(figure.number)
    return said >= (1 - MOST_ROUNDING) * true > 0 and abs(true - said) <= slack


def _launch(figure: SpokenFigure, sentence: Sentence, evidence: ClaimEvidence) -> str | None:
    """Return the cited calibration whose time of a launch this is; None if there is none."""
    for seq in sentence.cites.events:
        one = evidence.calibrations.get(seq)
        if one is not None and _same_time(one.event.ceilings.launch_ns or 0.0, figure):
            return f"event {seq}, {one.event.TYPE}"
    return None


def _rate(
    figure: SpokenFigure, sentence: Sentence, evidence: ClaimEvidence, larger: tuple[Fault, ...]
) -> JudgedFigure:
    """Check a rate against calibrations and data sheets, since no benchmark records a rate."""
    said = repr(figure.said)
    mentioned = named.processors(sentence.text) or named.processors(sentence.block)
    for seq in sentence.cites.events:
        calibrated = evidence.calibrations.get(seq)
        if calibrated is not None and _is_rate(figure, _measured_rates(calibrated)):
            others = [name for name, slug in mentioned.items() if slug is None or slug != calibrated.gpu]
            faults = (fault("wrong_processor", f"{name!r}: event {seq} is of {calibrated.gpu}") for name in others)
            return JudgedFigure(figure, tuple(faults), rests_on=(f"event {seq}, {calibrated.event.TYPE}",))
    if named.first(named.DATA_SHEET, sentence.block):
        for slug in mentioned.values():
            if slug is not None and _is_rate(figure, _published_rates(PROCESSORS[slug])):
                return JudgedFigure(figure, (), rests_on=(f"data sheet: {PROCESSORS[slug].source}",))
    why = f"{said}: a rate is said of a calibration's event or of a named data sheet, and of nothing else here"
    return JudgedFigure(figure, (fault("no_measure", why), *larger))


def _measured_rates(calibrated: Calibration) -> list[float]:
    ceilings = calibrated.event.ceilings
    rates = [value for name, value in ceilings if name.endswith("_per_s") and isinstance(value, float)]
    return [*rates, *ceilings.flop_per_s.values()]


def _published_rates(processor: Processor) -> list[float]:
    bandwidth = processor.peak_bandwidth_gb_s
    return [rate * 1e12 for rate in processor.peak_tflop_s.values()] + ([bandwidth * 1e9] if bandwidth else [])


def _is_rate(figure: SpokenFigure, rates: Iterable[float]) -> bool:
    return any(
        rounds_to(rate / figure.unit, figure.number) and figure.value <= (1 + MOST_ROUNDING) * rate for rate in rates
    )
