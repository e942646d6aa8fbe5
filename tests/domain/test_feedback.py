"""The feedback document fits into its size whatever an author or a compiler said."""

from forge.authors.document import feedback_document
from forge.domain.authoring import BudgetLeft, Judged
from forge.domain.digest import sha256
from forge.domain.feedback import DOCUMENT_BYTES, Feedback, FeedbackDocument, ShownCounterexample
from forge.domain.verdict import Reason, Rejected


def judged(number: int, text: str) -> Judged:
    shown = ShownCounterexample(
        shape={"batch": 1},
        index=(0,),
        snippet=text * 100,
        **dict.fromkeys(("inputs", "output", "expected", "got", "allowed_error"), text * 10),
    )
    return Judged(
        draft=sha256(f"{number}".encode()),
        candidate=sha256(b"c"),
        verdict=Rejected(reason=Reason(code="INCORRECT_NUMERICAL", message=text * 500)),
        feedback=Feedback(gate="numerics", counterexample=shown, build_log=(text * 10,) * 40),
    )


def test_a_document_fits_and_leaves_out_what_is_oldest_and_longest_first() -> None:
    for text in ("x" * 40, "é" * 40, "\x1b" * 40, '"' * 40):
        log = [judged(number, text) for number in range(200)]
        told = {one.draft: text * 7 for one in log}
        document = feedback_document(log, BudgetLeft(candidates=3), hypotheses=told, note=text * 20)
        assert len(document.model_dump_json().encode()) <= DOCUMENT_BYTES
        assert (document.verdict, document.gate, document.budget_left) == ("rejected", "numerics", {"candidates": 3})
        assert document.left_out + len(document.tried) == 200
        assert FeedbackDocument.model_validate_json(document.model_dump_json()) == document


def test_the_first_document_says_that_nothing_was_judged() -> None:
    document = feedback_document([], BudgetLeft(), hypotheses={}, note="no candidate")
    assert (document.verdict, document.note, document.tried) == ("none", "no candidate", ())
