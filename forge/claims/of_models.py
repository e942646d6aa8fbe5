"""Checks a figure about a whole model: only an end-to-end measurement of that model can bear it out."""

from collections.abc import Iterator

from forge.claims import named
from forge.claims.number import borne_out, rounds_to
from forge.claims.sentence import written
from forge.claims.spoken import Sentence, SpokenFigure
from forge.claims.verdict import Fault, fault
from forge.domain.model_measurement import ModelMode
from forge.events import ModelMeasured

MODE_WORDS: dict[ModelMode, tuple[str, ...]] = {
    "eager": ("eager",),
    "compile": ("torch.compile", "compile"),
    "graphs": ("cuda graph", "graphs"),
}
"""Words by which a sentence names a mode."""
OWN = "own functions"
"""Words for the baseline of a model: its functions without adopted kernels."""


def faults_of_model(figure: SpokenFigure, sentence: Sentence, seq: int, event: ModelMeasured) -> Iterator[Fault]:
    """Yield the faults of one figure against one measurement of a model."""
    if not event.conclusive:
        yield fault("no_verdict", f"event {seq} is inconclusive: its control lies outside of its band")
    if sentence.cites.kernels:
        yield fault("beyond_operation", f"event {seq} is of a whole model: name no kernel beside it")
    yield from _named(sentence, seq, event)
    if figure.kind != "ratio":
        yield fault("no_measure", f"{figure.said!r}: event {seq} holds a ratio of steps and nothing else to quote")
        return
    if OWN not in sentence.text.lower():
        yield fault("no_baseline", f"{figure.said!r} names no baseline: event {seq} compares with the model's {OWN}")
    found = event.comparison.speedup
    true = f"{written(found.low)} to {written(found.high)}x"
    if not borne_out(figure.value, figure.number, ratio=found.ratio, low=found.low, high=found.high):
        problem = fault("overstated", "") if figure.value > found.ratio else fault("not_measured", "")
        yield problem.model_copy(update={"why": f"{figure.said!r}: measured were {found.ratio:.3f}x ({true})"})
    if figure.interval is None:
        yield fault("no_interval", f"{figure.said!r} comes without its 95 % interval, {true}")
    elif not (rounds_to(found.low, figure.interval[0]) and rounds_to(found.high, figure.interval[1])):
        yield fault("wrong_interval", f"the interval isn't {' to '.join(figure.interval)}x: it is {true}")


def _named(sentence: Sentence, seq: int, event: ModelMeasured) -> Iterator[Fault]:
    """Yield a fault unless the sentence names the model, the processor, the workload and the mode of the event."""
    text = sentence.text.lower()
    if event.model not in text:
        yield fault("other_model", f"event {seq} is of the model {event.model!r}, which isn't named")
    if event.workload.text not in text:
        yield fault("other_model", f"event {seq} is of the workload {event.workload.text}, which isn't named")
    if not any(word in text for word in MODE_WORDS[event.mode]):
        yield fault("other_model", f"event {seq} is of the mode {event.mode}, which isn't named")
    processors = named.processors(sentence.text)
    if not processors:
        yield fault("no_processor", f"event {seq} is of {event.gpu}, which isn't named")
    other = next((name for name, slug in processors.items() if slug != event.gpu), None)
    if other is not None:
        yield fault("wrong_processor", f"{other!r}: event {seq} is of {event.gpu}")
