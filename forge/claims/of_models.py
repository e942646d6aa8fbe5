"""Checks a figure about a whole model: only an end-to-end measurement of that model can bear it out."""

from collections.abc import Iterator

from forge.claims import named
from forge.claims.ratio import faults_of_ratio
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
    yield from faults_of_ratio(figure, event.comparison.speedup, f"the model's {OWN}")


def _named(sentence: Sentence, seq: int, event: ModelMeasured) -> Iterator[Fault]:
    """Yield a fault unless the sentence names the model, the processor, the workload and the mode of the event."""
    text = sentence.text.lower()
    modes = MODE_WORDS[event.mode]
    asked = (("model", event.model, (event.model,)), ("workload", event.workload.text, (event.workload.text,)))
    for what, own, words in (*asked, ("mode", event.mode, modes)):
        if not any(word in text for word in words):
            yield fault("other_model", f"event {seq} is of the {what} {own!r}, which isn't named")
    processors = named.processors(sentence.text)
    if not processors:
        yield fault("no_processor", f"event {seq} is of {event.gpu}, which isn't named")
    other = next((name for name, slug in processors.items() if slug != event.gpu), None)
    if other is not None:
        yield fault("wrong_processor", f"{other!r}: event {seq} is of {event.gpu}")
