"""Checks a page against a ledger. A sentence about speed is supported, flagged, or set aside by the page itself."""

from collections.abc import Iterable

from forge.claims.evidence import ClaimEvidence
from forge.claims.judge import JudgedFigure, baseline_of, judge
from forge.claims.measured_file import ReadFile, faults_in_file, is_about_kernels
from forge.claims.prose import passages
from forge.claims.sentence import speed, taken_back
from forge.claims.spoken import Sentence, sentences
from forge.claims.verdict import Fault, Flagged, PageReport, SetAside, Supported
from forge.errors import UsageError

NOTHING = "Leave it out, or cite a measurement that bears it out: `forge kernel claims` writes sentences that hold."
"""Advice for a sentence on speed that cites no measurement."""
COMPARED_LIMIT = 20_000
"""Number of comparisons of a figure with a cited kernel or event in one page, at most. Each takes about 0.15 ms."""
IN_A_FILE = "Give the number as the file has it, with two digits or more, or name the file that holds it."
"""Advice for a number that isn't in the file that it is said to come from."""


def check_page(
    file: str, untrusted_text: str, evidence: ClaimEvidence, read: ReadFile, *, code: bool = False
) -> PageReport:
    """Judge every sentence of a page; raise UsageError if it is no page that can be read."""
    read_sentences = [
        sentence
        for passage in passages(untrusted_text, code=code)
        for sentence in sentences(passage)
        if sentence.figures
    ]
    _require_few(read_sentences)
    answers = [_answer(sentence, evidence, read) for sentence in read_sentences]
    return PageReport(
        file=file,
        flagged=tuple(one for one in answers if isinstance(one, Flagged)),
        supported=tuple(one for one in answers if isinstance(one, Supported)),
        set_aside=tuple(one for one in answers if isinstance(one, SetAside)),
    )


def _require_few(figured: Iterable[Sentence]) -> None:
    """Raise UsageError for a page with too many figures, each of which is held against all that its passage cites."""
    compared = 0
    for one in figured:
        compared += len(one.figures) * max(1, len(one.cites.kernels) + len(one.cites.events))
        if compared > COMPARED_LIMIT:
            raise UsageError(
                f"line {one.line} has the page's comparison {compared} of a figure with a kernel or event that its "
                f"passage cites: expected at most {COMPARED_LIMIT} in a page",
                hint="split the page, or cite fewer events in one passage",
            )


def _answer(sentence: Sentence, evidence: ClaimEvidence, read: ReadFile) -> Flagged | Supported | SetAside:
    passage = sentence.passage
    if passage.aside is not None and not sentence.cites:
        return SetAside(line=sentence.line, sentence=_flat(sentence), reason=passage.aside)
    if passage.measured is not None and not is_about_kernels(sentence.block):
        path = passage.measured
        judged = tuple(
            JudgedFigure(one, tuple(faults_in_file(one, path, read)), rests_on=(path,)) for one in sentence.figures
        )
    else:
        path = None
        judged = judge(sentence, evidence)
    faults: tuple[Fault, ...] = tuple(dict.fromkeys(fault for one in judged for fault in one.faults))
    if not faults:
        rests_on = tuple(dict.fromkeys(name for one in judged for name in one.rests_on))
        return Supported(line=sentence.line, sentence=_flat(sentence), rests_on=rests_on)
    said = tuple(dict.fromkeys(one.figure.said for one in judged if one.faults))
    instead = _instead(judged, sentence) if path is None else IN_A_FILE
    return Flagged(line=sentence.line, sentence=_flat(sentence), said=said, faults=faults, instead=instead)


def _flat(sentence: Sentence) -> str:
    return " ".join(sentence.text.split())


def _instead(judged: Iterable[JudgedFigure], sentence: Sentence) -> str:
    """Return a true sentence about the measurement that is cited."""
    wrong = [one for one in judged if one.faults]
    nearest = next((one.measurement for one in wrong if one.measurement is not None), None)
    if nearest is None or nearest.no_verdict is not None:
        return NOTHING
    if nearest.ended is not None:
        return taken_back(nearest).text
    meant = next((baseline_of(one.figure, sentence) for one in wrong if one.figure.kind == "ratio"), None)
    speedup = (nearest.over(meant.kind) if meant else None) or nearest.over(nearest.fastest)
    return speed(nearest, speedup).text if speedup else NOTHING
