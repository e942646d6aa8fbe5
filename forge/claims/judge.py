"""Holds one sentence against the evidence it names: a list of what is wrong with it, empty if it may be said."""

from collections.abc import Iterator
from dataclasses import dataclass

from forge.claims import named
from forge.claims.evidence import Evidence, Measurement
from forge.claims.figure import Figure
from forge.claims.names import Scope, unnamed
from forge.claims.number import plain, rounds_to
from forge.claims.rates import Judged, launch, rate, same_time, unit_ns
from forge.claims.sentence import shape_written, written
from forge.claims.spoken import CELL_GAP, Sentence
from forge.claims.verdict import Fault, Problem
from forge.domain.evidence import Speedup


def judge(sentence: Sentence, evidence: Evidence) -> tuple[Judged, ...]:
    """Every figure of a sentence against what its passage cites."""
    scope = scope_of(sentence)
    found, unknown = _resolved(scope.cites, evidence)
    figures = sentence.figures + (sentence.times if named.cited(sentence.text) else ())
    return tuple(
        _judged(one, scope, _Resting(about, scope, figures), unknown, evidence)
        for one, about in _subjects(figures, scope, found)
    )


@dataclass(frozen=True)
class _Resting:
    """The measurements that one figure rests on."""

    found: tuple[Measurement, ...]
    scope: Scope
    figures: tuple[Figure, ...]

    @property
    def on_every_one(self) -> bool:
        """Whether it is said of each of them: one ratio for all that the sentence cites."""
        return bool(named.cited(self.scope.text)) and sum(one.kind == "ratio" for one in self.figures) <= 1


def _subjects(
    figures: tuple[Figure, ...], scope: Scope, found: tuple[Measurement, ...]
) -> Iterator[tuple[Figure, tuple[Measurement, ...]]]:
    """Each figure with the kernels named last before it; without such, with everything that is cited."""
    ids = [(match.start(), match[0]) for match in named.KERNEL_ID.finditer(scope.text)]
    about, since = found, 0
    for one in sorted(figures, key=lambda figure: figure.start):
        between = {kernel_id for start, kernel_id in ids if since <= start < one.start}
        if between:
            about = tuple(measured for measured in found if measured.kernel_id in between)
            since = one.end
        yield one, about


def scope_of(sentence: Sentence) -> Scope:
    """What is read for a sentence: itself, then its passage, with the header of its table."""
    passage = sentence.passage
    block = plain(CELL_GAP.join([*passage.header, passage.text])).replace("\n", " ")
    text = sentence.text.replace("\n", " ")
    return Scope(text, block, named.cited(text) or named.cited(block))


def _resolved(cites: named.Cited, evidence: Evidence) -> tuple[tuple[Measurement, ...], tuple[Fault, ...]]:
    """The measurements that are cited, and citations that lead nowhere."""
    faults: list[Fault] = []
    found: list[Measurement] = []
    for kernel_id in cites.kernels:
        own = evidence.by_kernel(kernel_id)
        found += own
        if not own:
            faults.append(_fault("unknown_evidence", f"this ledger has no kernel {kernel_id}"))
    for seq in cites.events:
        own = evidence.by_event(seq)
        if seq not in evidence.known:
            faults.append(_fault("unknown_evidence", f"event {seq} is none that holds or ends a measurement here"))
        elif own and cites.kernels and not any(one.kernel_id in cites.kernels for one in own):
            faults.append(_fault("unknown_evidence", f"event {seq} isn't about {', '.join(cites.kernels)}"))
        else:
            found += [one for one in own if one not in found]
    if found and cites.events and not faults and not any(_measures(seq, evidence) for seq in cites.events):
        faults.append(
            _fault("unknown_evidence", f"event {cites.events[0]} holds no measurement: cite the benchmark's")
        )
    return tuple(found), tuple(faults)


def _measures(seq: int, evidence: Evidence) -> bool:
    """Whether an event holds a measurement, or ends one."""
    ends = any(one.ended is not None and one.ended.seq == seq for one in evidence.measurements)
    return bool(evidence.by_event(seq)) or seq in evidence.calibrations or ends


def _judged(
    figure: Figure,
    scope: Scope,
    resting: _Resting,
    unknown: tuple[Fault, ...],
    evidence: Evidence,
) -> Judged:
    found = resting.found
    if figure.kind == "rate":
        return rate(figure, scope, evidence)
    if figure.kind == "unreadable":
        why = (
            f"{figure.said!r} can't be read: say it as a ratio (`1.29x as fast as`), with its interval and its event"
        )
        return Judged(figure, (_fault("unreadable", why), *_beyond(scope, found)), found[0] if found else None)
    if figure.kind == "absolute":
        why = f"no event can bear out {figure.said!r}: name a ratio, its interval and its event"
        return Judged(figure, (_fault("no_measure", why), *_beyond(scope, found)), found[0] if found else None)
    if figure.kind == "time" and (calibrated := launch(figure, scope, evidence)):
        return Judged(figure, (), None, (calibrated,))
    if not found:
        said = "what it names holds no time" if scope.cites else "it names no kernel and no event"
        faults = unknown or (_fault("no_evidence", f"{figure.said!r}: {said}"),)
        return Judged(figure, (*faults, *_beyond(scope, ())), None)
    tried = [(tuple(_faults(figure, scope, one)), one) for one in found]
    choose = max if resting.on_every_one else min
    faults, nearest = choose(tried, key=lambda pair: len(pair[0]))
    return Judged(figure, unknown + faults, nearest, (f"event {nearest.seq}, {nearest.event_type}",))


def _beyond(scope: Scope, found: tuple[Measurement, ...]) -> Iterator[Fault]:
    text = scope.text
    for one in found:
        if one.environment is not None:
            text = text.replace(" ".join(one.environment.cpu_model.split()), " ")
    larger = named.beyond_operation(text)
    if larger is not None:
        why = f"{larger!r}: evidence about an operation says nothing of anything larger"
        yield _fault("beyond_operation", why)


def _faults(figure: Figure, scope: Scope, measured: Measurement) -> Iterator[Fault]:
    """What stands against one figure resting on one measurement."""
    yield from _standing(scope, measured)
    if figure.kind == "ratio":
        yield from _ratio(figure, scope, measured)
    elif figure.kind == "compared":
        why = f"{figure.said!r} says by how much neither in a ratio nor in an interval"
        yield _fault("no_interval", why)
    elif figure.kind == "floor_share":
        yield from _floor_share(figure, scope, measured)
    else:
        yield from _time(figure, measured)
    if figure.best_case:
        yield _fault("best_case", f"{figure.said!r} is said of the best of several: name the one, or a lower end")
    yield from unnamed(scope, measured)
    yield from _beyond(scope, (measured,))


def _standing(scope: Scope, measured: Measurement) -> Iterator[Fault]:
    ended = measured.ended
    if ended is not None and not (ended.word in scope.text.lower() and ended.seq in scope.cites.events):
        why = f"it was {ended.word} ({ended.why}): event {ended.seq}, {ended.event_type}"
        yield _fault("taken_back", why)
    if measured.no_verdict is not None:
        yield _fault("no_verdict", f"event {measured.seq} ended without a verdict: {measured.no_verdict}")
    if measured.simulated and "simulated" not in scope.text.lower():
        yield _fault("simulated", f"event {measured.verified_seq} is of a simulated run, and isn't called one")


def _ratio(figure: Figure, scope: Scope, measured: Measurement) -> Iterator[Fault]:
    against = scope.baseline_of(figure)
    kinds = ", ".join(named.baseline_name(one.baseline) for one in measured.speedups)
    if against is None or against.kind == "pytorch":
        said = "no baseline" if against is None else f"{against.said!r}, which isn't one baseline"
        yield _fault("no_baseline", f"{figure.said!r} names {said}: measured were {kinds}")
        return
    speedup = measured.over(against.kind)
    if speedup is None:
        yield _fault("wrong_baseline", f"{against.said!r} wasn't measured here: {kinds} were")
        return
    yield from _number(figure, speedup, measured)
    yield from _interval(figure, speedup)
    fastest = measured.fastest
    if fastest != speedup.baseline and fastest not in {one.kind for one in named.baselines(scope.block)}:
        assert fastest is not None
        why = f"{named.baseline_name(fastest)} was harder to beat, and isn't named beside it"
        yield _fault("weak_baseline", why)


def _number(figure: Figure, speedup: Speedup, measured: Measurement) -> Iterator[Fault]:
    found = speedup.interval
    ends = [(figure.value, figure.reach)]
    if figure.slower and figure.value > 0:
        ends.append((1 / figure.reach, 1 / figure.value))
    if any(least <= found.high and most >= found.low for least, most in ends):
        return
    measured_as = f"measured were {found.ratio:.3f}x ({written(found.low)} to {written(found.high)}x)"
    other = next((one for one in measured.speedups if _within(figure, one)), None)
    if other is not None:
        that = named.baseline_name(other.baseline)
        why = f"{figure.said!r} is the ratio over {that}; over {speedup.baseline} {measured_as}"
        yield _fault("wrong_baseline", why)
    if figure.value > found.high:
        yield _fault("overstated", f"{figure.said!r} is above the interval: {measured_as} over {speedup.baseline}")
    elif other is None:
        yield _fault("not_measured", f"{figure.said!r} isn't what was measured: {measured_as}")


def _within(figure: Figure, speedup: Speedup) -> bool:
    return figure.value <= speedup.interval.high and figure.reach >= speedup.interval.low


def _interval(figure: Figure, speedup: Speedup) -> Iterator[Fault]:
    found = speedup.interval
    true = f"{written(found.low)} to {written(found.high)}x"
    if figure.interval is None:
        yield _fault("no_interval", f"{figure.said!r} comes without its 95 % interval, {true}")
        return
    low, high = figure.interval
    if not (rounds_to(found.low, low) and rounds_to(found.high, high)):
        yield _fault("wrong_interval", f"the interval isn't {low} to {high}x: over {speedup.baseline} it is {true}")


def _floor_share(figure: Figure, scope: Scope, measured: Measurement) -> Iterator[Fault]:
    shares = [measured.floor_share]
    before = [one.kind for one in named.baselines(scope.text) if one.start < figure.start]
    shares += [
        measured.timing.floor_ns / one.baseline_median_ns for one in measured.speedups if one.baseline in before
    ]
    if any(rounds_to(100 * share, figure.number) for share in shares):
        return
    problem: Problem = "overstated" if figure.value > max(shares) else "not_measured"
    yield _fault(problem, f"{figure.said!r}: measured were {measured.floor_share:.0%} of the floor")


def _time(figure: Figure, measured: Measurement) -> Iterator[Fault]:
    unit = unit_ns(figure)
    sides = [timing for timing in (measured.timing, measured.timing.confirmation) if timing is not None]
    known = [measured.timing.floor_ns, measured.timing.harness_ns]
    for side in sides:
        known += [side.candidate.median_ns, side.candidate.p10_ns, side.candidate.p90_ns]
        known += [one.baseline_median_ns for one in side.speedups]
    if any(same_time(true / unit, figure.number) for true in known):
        return
    problem: Problem = "overstated" if figure.value < measured.candidate.median_ns else "not_measured"
    why = f"{figure.said!r}: its median was {measured.candidate.median_ns / 1000:.3f} us per call"
    yield _fault(problem, f"{why} at {shape_written(measured.timing.shape)}")


def _fault(problem: Problem, why: str) -> Fault:
    return Fault(problem=problem, why=why)
