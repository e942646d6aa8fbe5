"""What may be said about speed: writes the sentences that evidence allows, and checks pages against it.

    evidence       what can be cited, and what became of it
    sentence       the sentences it allows
    prose          Markdown -> passages
    forms          the forms in which speed is spoken of
    spoken         passage -> sentences with figures
    named          what a passage names beside its figures
    names          whether a sentence names what its number holds for
    judge          a sentence against its evidence
    measured_file  a figure against the file that a page names
    check          a page against a ledger

CLAIMS.md states the rules that are enforced here.
"""

from forge.claims.check import check_page
from forge.claims.evidence import TYPES, ClaimEvidence, Measurement, gather
from forge.claims.sentence import ClaimSentence, kernel_sentences
from forge.claims.verdict import PageReport

__all__ = [
    "TYPES",
    "ClaimEvidence",
    "ClaimSentence",
    "Measurement",
    "PageReport",
    "check_page",
    "gather",
    "kernel_sentences",
]
