"""What a ledger's events leave to be quoted."""

import pytest

from forge.claims import gather, kernel_sentences
from tests.projections.histories import History, Run, deprecate, invalidate, promoted, revoke
from tests.projections.values import task


def test_a_promoted_kernel_is_found_by_its_id_and_by_both_events() -> None:
    history = History()
    kernel_id = promoted(history)
    found = gather(history.events)
    (one,) = found.by_kernel(kernel_id)
    assert found.by_event(one.seq) == (one,)
    assert one.promoted_seq is not None
    assert found.by_event(one.promoted_seq) == (one,)
    assert one.ended is None
    assert found.kernel_ids == [kernel_id]


@pytest.mark.parametrize("act", ["revoke", "deprecate", "invalidate"])
def test_what_ends_a_claim_is_known_with_its_event(act: str) -> None:
    history = History()
    kernel_id = promoted(history)
    (before,) = gather(history.events).by_kernel(kernel_id)
    if act == "invalidate":
        invalidate(history, before.seq)
    else:
        (revoke if act == "revoke" else deprecate)(history, kernel_id)
    (after,) = gather(history.events).by_kernel(kernel_id)
    assert after.ended is not None
    assert after.ended.seq == len(history.events)
    (sentence,) = kernel_sentences(after)
    assert (sentence.about, sentence.seq) == ("nothing", after.ended.seq)
    assert sentence.text.endswith(f": event {after.ended.seq}, {after.ended.event_type}.")


def test_a_revocation_outweighs_what_was_said_before() -> None:
    history = History()
    kernel_id = promoted(history)
    deprecate(history, kernel_id)
    revoke(history, kernel_id)
    (one,) = gather(history.events).by_kernel(kernel_id)
    assert one.ended is not None
    assert one.ended.word == "revoked"


def test_a_baseline_that_stood_may_be_quoted_and_noise_may_not() -> None:
    history = History()
    Run(history, task(), "slow").start().submit().verify().fail("TOO_SLOW")
    Run(history, task(op="softmax"), "noisy").start().submit().verify().fail("NOISE_TOO_HIGH")
    slow, noisy = gather(history.events).measurements
    assert (slow.no_verdict, slow.kernel_id) == (None, None)
    assert noisy.no_verdict == "NOISE_TOO_HIGH"


def test_every_sentence_ends_in_its_event() -> None:
    history = History()
    kernel_id = promoted(history)
    types = {recorded.seq: recorded.event.TYPE for recorded in history.events}
    (one,) = gather(history.events).by_kernel(kernel_id)
    sentences = list(kernel_sentences(one))
    assert {"speed", "floor", "time", "verification", "level", "shape", "processor"} == {s.about for s in sentences}
    for sentence in sentences:
        assert types[sentence.seq] == sentence.event_type
        assert sentence.text.endswith(f": event {sentence.seq}, {sentence.event_type}.")


def test_a_simulated_run_is_called_one() -> None:
    history = History()
    run = Run(history, task(), "a").start().submit().verify(simulated=True).benchmark()
    run.promote()
    (one,) = gather(history.events).measurements
    (verification,) = [s.text for s in kernel_sentences(one) if s.about == "verification"]
    assert "simulated" in verification
