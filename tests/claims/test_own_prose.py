"""What this project says about speed on its own pages is borne out by the ledger that ships with it."""

from pathlib import Path

import pytest

from forge.app.claims import evidence_of
from forge.claims import ClaimEvidence, check_page
from tests.docs.markdown import ROOT, pages, read


@pytest.fixture(scope="module")
def shipped() -> ClaimEvidence:
    return evidence_of(ROOT)


@pytest.mark.parametrize("page", pages())
def test_a_page_claims_nothing_that_its_evidence_does_not_bear_out(page: str, shipped: ClaimEvidence) -> None:
    def beside(name: str) -> str | None:
        path: Path = ROOT / Path(page).parent / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    report = check_page(page, read(page), shipped, beside)
    assert [(one.line, one.sentence, one.faults) for one in report.flagged] == []


def test_the_sentence_that_the_rules_show_is_a_true_one(shipped: ClaimEvidence) -> None:
    report = check_page("CLAIMS.md", read("CLAIMS.md"), shipped, lambda _: None)
    assert len(report.supported) == 1
