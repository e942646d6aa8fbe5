"""The sentences that recorded evidence allows, each ending in the event it rests on."""

from collections.abc import Iterator, Sequence

from forge.claims.evidence import Measurement
from forge.claims.named import baseline_name
from forge.claims.number import plain
from forge.claims.spoken import figures
from forge.domain.digest import Value
from forge.domain.evidence import Interval, Speedup
from forge.domain.policy import Regime
from forge.domain.tensors import Shape
from forge.platforms import PROCESSORS

LEAST_DECIMALS = 3
"""Number of decimals of a ratio in a sentence, at least. Differences below 0.2 % aren't resolved
(docs/measurement.md), so three are enough."""
MOST_DECIMALS = 12
"""Number of decimals of a ratio in a sentence, at most. Chosen; no measured interval is narrower than 1e-12."""
_CLOCKS = {
    "launch_plan": "by replay of its launch plan (`launch_plan`)",
    "host_slope": "by the host's clock (`host_slope`)",
}

REGIME_WORDS: dict[Regime, str] = {"cold": "with cold operands", "resident": "with resident operands"}
"""Words by which a sentence names the regime of its numbers. One that names none is about the cold regime."""


class ClaimSentence(Value):
    """One sentence that may be said, and what it rests on."""

    about: str
    """nothing, speed, floor, time, verification, domain, promotion, shape, processor, level or path."""
    text: str
    seq: int
    event_type: str


def kernel_sentences(measured: Measurement, *, further: Sequence[Measurement] = ()) -> Iterator[ClaimSentence]:
    """Yield all sentences that may be said of a promoted kernel; of a withdrawn one, that nothing may be said.

    `further` are its measurements in the same regime at the other shapes for which it is promoted.
    """
    if measured.ended is not None:
        yield taken_back(measured)
        return
    for point in (measured, *further):
        yield from _figures(point)
    if measured.regime == "cold":
        yield from _verification(measured)
        yield from _limits(measured, further)


def _figures(measured: Measurement) -> Iterator[ClaimSentence]:
    """Yield the speed over each baseline, the share of the floor and the time at one shape."""
    for speedup in sorted(measured.speedups, key=lambda one: (one.baseline != measured.fastest, one.baseline)):
        yield speed(measured, speedup)
    yield floor(measured)
    yield _time(measured)


def taken_back(measured: Measurement) -> ClaimSentence:
    """Return the sentence that nothing may be said about its speed, and why."""
    ended = measured.ended
    assert ended is not None
    why = _one_line(ended.why)
    reason = "" if figures(plain(why)) else f" ({why})"  # a reason that quotes a speed would say it
    text = f"Nothing may be said about the speed of {_subject(measured)}: it was {ended.word}{reason}"
    return _sentence("nothing", text, ended.seq, ended.event_type)


def speed(measured: Measurement, speedup: Speedup) -> ClaimSentence:
    """Return the sentence on the speedup over one baseline, with everything that it holds for."""
    found = speedup.interval
    low, high = (written(end) for end in (found.low, found.high))
    text = (
        f"{_subject(measured)} is {ratio_written(found)}x as fast as {baseline_name(speedup.baseline)} "
        f"(95 % interval {low} to {high}x) for one call of {_where(measured)}, {_how(measured)}"
    )
    if measured.fastest is not None and speedup.baseline != measured.fastest:
        text += f"; the strongest baseline is {baseline_name(measured.fastest)}"
    elif len(measured.speedups) == 1:
        text += "; no other baseline was measured"
    if measured.promoted is None:
        text += "; it was not promoted"
    return _sentence("speed", text, measured.seq, measured.event_type)


def floor(measured: Measurement) -> ClaimSentence:
    """Return the sentence on the share of the floor that it reached."""
    text = f"{_subject(measured)} reaches {measured.floor_share:.0%} of its floor for one call of {_where(measured)}"
    fastest = measured.over(measured.fastest)
    if fastest is not None:
        share = measured.first.floor_ns / fastest.baseline_median_ns
        text += f", where {baseline_name(fastest.baseline)} reaches {share:.0%} of the same floor"
    return _sentence("floor", text.replace("%", " %"), measured.seq, measured.event_type)


def ratio_written(found: Interval) -> str:
    """Return the ratio with the fewest decimals that keep it inside its interval, but at least three."""
    for decimals in range(LEAST_DECIMALS, MOST_DECIMALS + 1):
        text = f"{found.ratio:.{decimals}f}"
        if found.low <= float(text) <= found.high:
            return text
    return repr(found.ratio)


def written(end: float) -> str:
    """Return one end of an interval as text."""
    return f"{end:.{LEAST_DECIMALS}f}"


def shape_written(shape: Shape) -> str:
    """Return a shape as a sentence names it: `batch 16, hidden_size 4096`."""
    return ", ".join(f"{axis} {size}" for axis, size in shape.items())


def processor_written(measured: Measurement) -> str:
    """Return the processor as a sentence names it: a GPU's model, or a host's and its cores."""
    environment, gpu = measured.environment, measured.task.target.gpu
    if gpu != "cpu":
        return f"one {PROCESSORS[gpu].name}" if gpu in PROCESSORS else gpu
    if environment is None:
        return "a CPU"
    return f"a CPU, {_one_line(environment.cpu_model)} with cores: {environment.cpu_cores}"


def _subject(measured: Measurement) -> str:
    kernel_id = measured.kernel_id
    return f"`{kernel_id}`" if kernel_id else f"The candidate of task `{measured.task.task_id}`"


def _where(measured: Measurement) -> str:
    shape = shape_written(measured.timing.shape)
    where = f"the operation {measured.task.op} at {shape}, {measured.task.dtype}, on {processor_written(measured)}"
    return where if measured.timing.residency is None else f"{where}, {REGIME_WORDS[measured.regime]}"


def _how(measured: Measurement) -> str:
    again, pairs = measured.first.confirmation, measured.reported.process_pairs
    confirmed = ", measured a second time on fresh data" if again else ""
    return f"{_CLOCKS[measured.candidate.method]}, over {pairs} process pairs{confirmed}"


def _time(measured: Measurement) -> ClaimSentence:
    micros = measured.candidate.median_ns / 1000
    text = f"{_subject(measured)} takes {micros:.3f} us for one call of {_where(measured)}, {_how(measured)} (median)"
    return _sentence("time", text, measured.seq, measured.event_type)


def _verification(measured: Measurement) -> Iterator[ClaimSentence]:
    verified = measured.verified
    if verified is None:
        return
    names = ", ".join(gate.name for gate in verified.gates if gate.verdict == "passed")
    used = max(errors.bound_used for errors in verified.workloads)
    simulated = "; that run was simulated, in an interpreter" if verified.simulated else ""
    text = (
        f"{_subject(measured)} passed these gates at {len(verified.shapes_verified)} shapes, with at most "
        f"{used:.3f} of its error bound used, behind the isolation level {verified.isolation.level}"
        f"{simulated}: {names}"
    )
    yield _sentence("verification", text, measured.verified_seq, verified.TYPE)
    if verified.domain is not None:
        text = f"It was verified for calls with {verified.domain.text}, and promises an answer for no other call"
        yield _sentence("domain", text, measured.verified_seq, verified.TYPE)


def _limits(measured: Measurement, further: Sequence[Measurement]) -> Iterator[ClaimSentence]:
    """Yield sentences on what the numbers don't hold for."""
    promoted, seq, kind = measured.promoted, measured.seq, measured.event_type
    if promoted is not None and measured.promoted_seq is not None:
        text = (
            f"This is evidence about the operation alone ({promoted.evidence_level}, {promoted.benchmark_scope}): "
            "what a layer, a model or a request gains was not measured"
        )
        yield _sentence("level", text, measured.promoted_seq, promoted.TYPE)
    shapes = "; ".join(shape_written(one.timing.shape) for one in (measured, *further))
    only = "promoted" if further else "measured"
    yield _sentence("shape", f"Its speed was {only} at {shapes} and nowhere else", seq, kind)
    environment = measured.environment
    if environment is not None and measured.environment_seq is not None:
        software = (("driver", environment.driver), ("torch", environment.torch), ("triton", environment.triton))
        named = ", ".join(f"{name} {version}" for name, version in software if version)
        text = f"It holds for {processor_written(measured)} with {named}, and for no other processor"
        yield _sentence("processor", text, measured.environment_seq, "EnvironmentCaptured")
    if measured.timing.harness_ns > 0:
        micros = measured.timing.harness_ns / 1000
        text = f"Its times, and those of the baselines, include copying outputs; a call's path took {micros:.3f} us"
        yield _sentence("path", text, seq, kind)


def _sentence(about: str, text: str, seq: int, event_type: str) -> ClaimSentence:
    return ClaimSentence(about=about, text=f"{text}: event {seq}, {event_type}.", seq=seq, event_type=event_type)


def _one_line(text: str) -> str:
    return " ".join(text.split())
