"""A page held against a ledger: every sentence about speed is supported, flagged, or set aside by the page itself."""

from collections.abc import Iterable

from forge.claims.evidence import Evidence, Measurement
from forge.claims.judge import judge, scope_of
from forge.claims.measured_file import ReadFile, faults_in_file, is_about_kernels
from forge.claims.named import cited, dtypes, operations, processors
from forge.claims.prose import passages
from forge.claims.rates import Judged
from forge.claims.sentence import speed, taken_back
from forge.claims.spoken import Sentence, sentences
from forge.claims.verdict import Fault, Flagged, PageReport, SetAside, Supported

NOTHING = "This ledger holds no measurement for it: leave it out, or measure it and cite the event."
IN_A_FILE = "Give the number as the file has it, with two digits or more, or name the file that holds it."


def check_page(
    file: str, untrusted_text: str, evidence: Evidence, read: ReadFile, *, code: bool = False
) -> PageReport:
    """Judge every sentence of a page; raise UsageError if it is no page that can be read."""
    flagged: list[Flagged] = []
    supported: list[Supported] = []
    aside: list[SetAside] = []
    spoken = (sentence for passage in passages(untrusted_text, code=code) for sentence in sentences(passage))
    for sentence in spoken:
        match _answer(sentence, evidence, read):
            case Flagged() as one:
                flagged.append(one)
            case Supported() as one:
                supported.append(one)
            case SetAside() as one:
                aside.append(one)
    return PageReport(file=file, flagged=tuple(flagged), supported=tuple(supported), set_aside=tuple(aside))


def _answer(sentence: Sentence, evidence: Evidence, read: ReadFile) -> Flagged | Supported | SetAside | None:
    if not (sentence.figures or (sentence.times and cited(sentence.text))):
        return None
    scope = scope_of(sentence)
    passage = sentence.passage
    if passage.aside is not None and not scope.cites:
        return SetAside(line=sentence.line, sentence=_flat(sentence), reason=passage.aside)
    if passage.measured is not None and not is_about_kernels(scope.block):
        return _from_file(sentence, passage.measured, read)
    judged = judge(sentence, evidence)
    faults = tuple(dict.fromkeys(fault for one in judged for fault in one.faults))
    if not faults:
        rests_on = tuple(dict.fromkeys(name for one in judged for name in one.rests_on))
        return Supported(line=sentence.line, sentence=_flat(sentence), rests_on=rests_on)
    said = tuple(dict.fromkeys(one.figure.said for one in judged if one.faults))
    return _flag(sentence, said, faults, instead=_instead(judged, sentence, evidence))


def _from_file(sentence: Sentence, path: str, read: ReadFile) -> Flagged | Supported | None:
    if not sentence.figures:
        return None
    faults = tuple(dict.fromkeys(fault for one in sentence.figures for fault in faults_in_file(one, path, read)))
    if not faults:
        return Supported(line=sentence.line, sentence=_flat(sentence), rests_on=(path,))
    return _flag(sentence, tuple(one.said for one in sentence.figures), faults, instead=IN_A_FILE)


def _flag(sentence: Sentence, said: tuple[str, ...], faults: tuple[Fault, ...], *, instead: str) -> Flagged:
    return Flagged(line=sentence.line, sentence=_flat(sentence), said=said, faults=faults, instead=instead)


def _flat(sentence: Sentence) -> str:
    return " ".join(sentence.text.split())


def _instead(judged: Iterable[Judged], sentence: Sentence, evidence: Evidence) -> str:
    """The sentence that would be true: of what is cited, else of what the words come nearest to."""
    wrong = [one for one in judged if one.faults]
    nearest = next((one.measurement for one in wrong if one.measurement is not None), None)
    nearest = nearest or _nearest(sentence, evidence)
    if nearest is None or nearest.no_verdict is not None:
        return NOTHING
    if nearest.ended is not None:
        return taken_back(nearest).text
    scope = scope_of(sentence)
    meant = next((scope.baseline_of(one.figure) for one in wrong if one.figure.kind == "ratio"), None)
    speedup = (nearest.over(meant.kind) if meant else None) or nearest.over(nearest.fastest)
    return speed(nearest, speedup).text if speedup else NOTHING


def _nearest(sentence: Sentence, evidence: Evidence) -> Measurement | None:
    """The measurement that the words fit best; the operation has to be named."""
    text = scope_of(sentence).block
    ops, gpus = operations(text), {one.slug for one in processors(text).values() if one}
    types = dtypes(text)
    fitting = [one for one in evidence.measurements if one.task.op in ops and not one.ended and not one.no_verdict]
    return max(
        fitting,
        key=lambda one: (one.task.target.gpu in gpus, one.task.dtype in types, one.promoted is not None, one.seq),
        default=None,
    )
