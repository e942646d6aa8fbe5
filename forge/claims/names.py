"""Checks that a sentence names what its number holds for: processor, shape, element type and operation."""

from collections.abc import Iterator

from forge.claims import named
from forge.claims.evidence import Measurement
from forge.claims.sentence import shape_written
from forge.claims.spoken import Sentence
from forge.claims.verdict import Fault, fault
from forge.domain.digest import canonical
from forge.platforms import PROCESSORS, evidence_reach

Faults = Iterator[Fault]


def unnamed(sentence: Sentence, measured: Measurement) -> Faults:
    """Yield the faults of what isn't named or is named wrongly. A kernel's id names all four."""
    yield from _processor(sentence, measured)
    yield from _shape(sentence, measured)
    task, elsewhere = measured.task, _elsewhere(sentence, measured)
    by_id = measured.kernel_id in sentence.cites.kernels
    dtypes = named.dtypes(sentence.text) or named.dtypes(elsewhere)
    if several := named.first(named.ANY_DTYPE, sentence.text):
        yield fault("wrong_dtype", f"{several!r}: it was measured in {task.dtype} alone")
    if dtypes and task.dtype not in dtypes:
        yield fault("wrong_dtype", f"{', '.join(sorted(dtypes))}: it was measured in {task.dtype}")
    elif not dtypes and not by_id:
        yield fault("no_dtype", f"it names no element type: it was measured in {task.dtype}")
    operations = named.operations(sentence.text) or named.operations(elsewhere)
    if operations and task.op not in operations:
        yield fault("wrong_operation", f"{', '.join(sorted(operations))}: it was measured for {task.op}")
    elif not operations and not by_id:
        yield fault("no_operation", f"it names no operation: it was measured for {task.op}")


def _elsewhere(sentence: Sentence, measured: Measurement) -> str:
    """Return the passage, in which a name may stand too; "" if the sentence has the kernel's id, which names all."""
    return "" if measured.kernel_id in named.cited(sentence.text).kernels else sentence.block


def _processor(sentence: Sentence, measured: Measurement) -> Faults:
    slug, text = measured.task.target.gpu, sentence.text
    if several := named.first(named.ANY_PROCESSOR, text) or named.several(text):
        why = f"{several!r}: it was measured on {PROCESSORS[slug].name if slug in PROCESSORS else slug} alone"
        yield fault("wrong_processor", why)
    mentioned = named.processors(text) or named.processors(_elsewhere(sentence, measured))
    if not mentioned and measured.kernel_id not in sentence.cites.kernels:
        yield fault("no_processor", f"it names no processor: it was measured on {slug}")
    model = measured.environment.cpu_model if measured.environment is not None else ""
    for said, claimed in mentioned.items():
        gap: str | None = "nothing was measured there" if claimed is None else f"it was measured on {slug}"
        if claimed is not None and slug in PROCESSORS:
            gap = evidence_reach(PROCESSORS[slug], PROCESSORS[claimed])
        if claimed == slug == "cpu" and said.lower() not in f"cpus {model}".lower():
            gap = f"it was measured on {model}"
        if gap is not None:
            yield fault("wrong_processor", f"{said!r}: {gap}")


def _shape(sentence: Sentence, measured: Measurement) -> Faults:
    wanted = measured.timing.shape
    own = _named_shape(sentence.text, measured)
    if own.other is None and own.missing:
        own = _named_shape(_elsewhere(sentence, measured), measured)
    if own.other is not None:
        yield fault("wrong_shape", f"{own.other!r}: it was measured at {shape_written(wanted)}")
    elif own.missing and not (measured.kernel_id in sentence.cites.kernels and wanted == measured.task.shape):
        why = f"it gives no {', '.join(own.missing)}: it was measured at {shape_written(wanted)}"
        yield fault("no_shape", why)


def at_named_shapes(sentence: Sentence, found: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
    """Return the measurements that a sentence is about, where one kernel was measured at several shapes.

    They are those at the shapes that the sentence names. Without a shape they are those whose event it cites; without
    an event, the one at the task's own shape, which a kernel's id names.
    """
    kept: list[Measurement] = []
    for kernel_id in dict.fromkeys(one.kernel_id for one in found):
        own = [one for one in found if one.kernel_id == kernel_id]
        if kernel_id is not None and len({canonical(one.timing.shape) for one in own}) > 1:
            said = [one for one in own if _is_named(sentence, one)]
            cited = [one for one in own if one.seq in sentence.cites.events]
            own = said or cited or [one for one in own if one.timing.shape == one.task.shape]
        kept += own
    return tuple(kept)


def _is_named(sentence: Sentence, measured: Measurement) -> bool:
    said = _named_shape(sentence.text, measured)
    return said.other is None and not said.missing


def _named_shape(text: str, measured: Measurement) -> named.ShapeNamed:
    return named.shape(text, tuple(measured.timing.shape.items()), measured.task.op)


def beyond(sentence: Sentence, found: tuple[Measurement, ...]) -> Faults:
    """Yield a fault if a word means more than an operation; the `model` in a processor's name doesn't."""
    text = sentence.text
    for one in found:
        if one.environment is not None:
            text = text.replace(" ".join(one.environment.cpu_model.split()), " ")
    if larger := named.first(named.BEYOND_OPERATION, text):
        why = f"{larger!r}: evidence about an operation says nothing of anything larger"
        yield fault("beyond_operation", why)
