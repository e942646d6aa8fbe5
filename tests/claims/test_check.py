"""A page held against evidence: what it bears out is supported, and nothing else."""

import dataclasses
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.claims import Measurement, kernel_sentences
from forge.claims.check import NOTHING
from forge.claims.evidence import Withdrawn
from forge.claims.named import operations
from forge.claims.sentence import ratio_written, speed, written
from forge.claims.verdict import Supported
from forge.errors import UsageError
from tests.claims.evidences import PROMOTED_SEQ, SEQ, checked, evidence, measurement, measurements, problems

KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
TRUE = speed(measurement(), measurement().over("compile")).text  # type: ignore[arg-type]  # it is measured
TRUE_INTERVAL = "(95 % interval 1.288 to 1.295x)"
FEW = settings(max_examples=40)
WHERE = "for rmsnorm at batch 16, hidden_size 4096, bf16, on an H200"


@FEW
@given(measurements())
def test_a_sentence_made_from_evidence_is_always_supported(measured: Measurement) -> None:
    found = evidence(measured)
    for sentence in kernel_sentences(measured):
        report = checked(sentence.text, found)
        assert report.flagged == (), sentence.text
        assert bool(report.supported) == (sentence.about in ("speed", "floor", "time"))


@FEW
@given(measurements(), st.data(), st.floats(1.001, 50.0))
def test_a_number_above_the_interval_is_always_flagged(measured: Measurement, data: st.DataObject, by: float) -> None:
    one = data.draw(st.sampled_from(measured.speedups))
    raised = f"{one.interval.high * by + 0.001:.3f}"
    text = speed(measured, one).text.replace(f"is {ratio_written(one.interval)}x", f"is {raised}x", 1)
    found = problems(text, evidence(measured))
    assert found & {"overstated", "wrong_baseline"}, text


@pytest.mark.parametrize(
    ("number", "may_be_said"),
    [
        ("2.054", True),
        ("2.05", True),
        ("2.1", True),
        ("1.9", True),
        ("2.06", False),
        ("2.2", False),
        ("2.231", False),
    ],
)
def test_a_wide_interval_lends_no_number_above_the_ratio(number: str, may_be_said: bool) -> None:
    measured = measurement({"compile": (2.054, 1.891, 2.231)})
    text = f"{KERNEL} is {number}x as fast as torch.compile (95 % interval 1.891 to 2.231x)."
    assert problems(text, evidence(measured)) == (set() if may_be_said else {"overstated"})


@FEW
@given(measurements(), st.data())
def test_another_baseline_is_flagged_unless_its_interval_is_the_same(
    measured: Measurement, data: st.DataObject
) -> None:
    names = {"eager": "PyTorch eager", "compile": "`torch.compile`", "vendor": "the vendor's operator"}
    one = data.draw(st.sampled_from(measured.speedups))
    other = data.draw(st.sampled_from([kind for kind in names if kind != one.baseline]))
    claimed = measured.over(other)
    text = re.sub(r"as fast as .*? \(", f"as fast as {names[other]} (", speed(measured, one).text, count=1)
    if claimed is None or written(claimed.interval.high) != written(one.interval.high):
        assert problems(text, evidence(measured)) & {"wrong_baseline", "overstated", "not_measured", "wrong_interval"}


@pytest.mark.slow
@given(
    measurements(), st.sampled_from(["NVIDIA H100 SXM", "an A100", "NVIDIA GeForce RTX 4090", "MI300X", "GTX 1080"])
)
def test_another_gpu_is_flagged(measured: Measurement, gpu: str) -> None:
    for one in measured.speedups:
        text = re.sub(r"on one .*?, by", f"on {gpu}, by", speed(measured, one).text)
        assert "wrong_processor" in problems(text, evidence(measured))


@FEW
@given(measurements(), st.integers(1, 2**20), st.sampled_from(["batch", "hidden_size"]))
def test_another_shape_is_flagged(measured: Measurement, size: int, axis: str) -> None:
    true = measured.timing.shape[axis]
    text = speed(measured, measured.speedups[0]).text.replace(f"{axis} {true}", f"{axis} {size}")
    assert ("wrong_shape" in problems(text, evidence(measured))) == (size != true)


@given(st.text(alphabet="0123456789.,%xX\u00d7 \n|-<>!`*_#[]()~onfastertorch.compileeventµs½", max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    checked(text)


@given(st.text(max_size=60))
def test_no_word_behind_a_false_number_makes_it_true(text: str) -> None:
    report = checked(f"{KERNEL} is 9.9x faster than torch.compile. " + text.replace("<", ""))
    said = [one for one in report.supported if "9.9x" in one.sentence]
    assert said == []


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (f"{KERNEL} is 1.29x faster than torch.compile.", "no_interval"),
        (f"{KERNEL} is 1.291x faster than torch.compile (95 % interval 1.2 to 1.4x).", "wrong_interval"),
        (f"{KERNEL} is 1.3x faster than torch.compile {TRUE_INTERVAL}.", "overstated"),
        (f"{KERNEL} is 30 % faster than torch.compile.", "unreadable"),
        (f"{KERNEL} has 23 % less latency than torch.compile.", "unreadable"),
        (f"{KERNEL} is 1.1x faster than torch.compile {TRUE_INTERVAL}.", "not_measured"),
        (f"{KERNEL} is 1.291x faster than cuBLAS {TRUE_INTERVAL}.", "wrong_baseline"),
        (f"{KERNEL} is 1.291x faster than PyTorch {TRUE_INTERVAL}.", "no_baseline"),
        (f"{KERNEL} is 1.291x faster {TRUE_INTERVAL}.", "no_baseline"),
        (f"{KERNEL} is 12.094x faster than torch.compile (95 % interval 12.067 to 12.120x).", "wrong_baseline"),
        (f"{KERNEL} is 12.094x as fast as eager (95 % interval 12.067 to 12.120x).", "weak_baseline"),
        (f"{KERNEL} makes inference 1.291x faster than torch.compile {TRUE_INTERVAL}.", "beyond_operation"),
        (f"{KERNEL} is up to 1.29x faster than torch.compile {TRUE_INTERVAL}.", "best_case"),
        (f"{KERNEL} has zero overhead.", "no_measure"),
        (f"{KERNEL} is faster than torch.compile.", "no_measure"),
        (f"{KERNEL} is 1.291x as fast as torch.compile {TRUE_INTERVAL} with zero overhead.", "no_measure"),
        (f"{KERNEL} is 1.291x, zero overhead, as fast as torch.compile {TRUE_INTERVAL}.", "no_measure"),
        (f"{KERNEL} is 1.291x as fast as blazingly-fast torch.compile {TRUE_INTERVAL}.", "no_measure"),
        (f"{KERNEL} is 1.291x slower than torch.compile {TRUE_INTERVAL}.", "unreadable"),
        (f"{KERNEL} is 1.291 times as fast as torch.compile {TRUE_INTERVAL}.", "unreadable"),
        (f"{KERNEL} is at least 1.1x as fast as torch.compile {TRUE_INTERVAL}.", "not_measured"),
        (f"{KERNEL} reaches 40 % of its floor.", "overstated"),
        (f"{KERNEL} takes 1.5 us per call.", "overstated"),
        (f"{KERNEL} runs at 120 tokens/s.", "beyond_operation"),
        (f"{KERNEL} reaches 3.9 TB/s.", "no_measure"),
        (f"{KERNEL} is 1.291x faster than torch.compile {TRUE_INTERVAL} at all shapes.", "wrong_shape"),
        (f"{KERNEL} is 1.291x faster than torch.compile {TRUE_INTERVAL} in fp16.", "wrong_dtype"),
        (f"{KERNEL}: softmax is 1.291x faster than torch.compile {TRUE_INTERVAL}.", "wrong_operation"),
        (f"On data-centre GPUs {KERNEL} is 1.291x faster than torch.compile (1.288 to 1.295x).", "wrong_processor"),
        (f"1.291x faster than torch.compile {TRUE_INTERVAL}.", "no_evidence"),
        ("triton_gelu_h200_bf16_b1_v1 is 1.2x faster than eager.", "unknown_evidence"),
        (f"1.291x over torch.compile {TRUE_INTERVAL} {WHERE}: event 999.", "unknown_evidence"),
        (f"1.291x over torch.compile {TRUE_INTERVAL} {WHERE}: event 9.", "no_evidence"),
        (f"1.291x over torch.compile {TRUE_INTERVAL} in bf16: event {SEQ}.", "no_shape"),
        (f"1.291x over torch.compile {TRUE_INTERVAL} at 16 x 4096: event {SEQ}.", "no_processor"),
        (f"1.291x over torch.compile {TRUE_INTERVAL} on an H200: event {SEQ}.", "no_dtype"),
        (f"1.291x over torch.compile {TRUE_INTERVAL} on an H200: event {SEQ}.", "no_operation"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(sentence: str, problem: str) -> None:
    assert problem in problems(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        f"{KERNEL} is 1.29x faster than torch.compile {TRUE_INTERVAL}.",
        f"`{KERNEL}` is 1.2x as fast as torch.compile (95 % interval 1.29 to 1.29x).",
        f"It is 1.291x as fast as torch.compile {TRUE_INTERVAL} {WHERE}.\nEvent {SEQ}, BenchmarkRecorded.",
        f"1,29\u00d7 over torch.compile (95 % interval 1.288\u20131.295\u00d7) {WHERE} (event {PROMOTED_SEQ}).",
        f"{KERNEL} is 12.09x as fast as eager (12.067 to 12.120x), 1.29x as fast as torch.compile (1.288 to 1.295x).",
        f"{KERNEL} takes 1.892 us per call and reaches 36 % of its floor.",
        f"| kernel | speedup over compile | 95 % interval |\n|---|---|---|\n| {KERNEL} | 1.291 | 1.288 to 1.295 |",
    ],
)
def test_what_the_evidence_bears_out_may_be_said_in_many_forms(sentence: str) -> None:
    report = checked(sentence)
    assert report.flagged == ()
    assert [type(one) for one in report.supported] == [Supported]
    assert report.supported[0].rests_on == (f"event {SEQ}, BenchmarkRecorded",)


def test_the_sentence_that_would_be_true_is_given_and_is_true() -> None:
    (flagged,) = checked(f"{KERNEL} is up to 2x faster than torch.compile.").flagged
    assert flagged.instead == TRUE
    assert checked(flagged.instead).flagged == ()


def test_without_a_citation_no_sentence_is_made_up() -> None:
    (flagged,) = checked("Our RMSNorm is twice as fast as torch.compile on the H200.").flagged
    assert flagged.instead == NOTHING


@pytest.mark.parametrize("word", ["revoked", "invalidated", "deprecated"])
def test_evidence_that_was_taken_back_carries_nothing_but_history(word: str) -> None:
    ended = Withdrawn(seq=7, event_type="KernelRevoked", word=word, why="off by one")
    found = evidence(measurement(ended=ended))
    (flagged,) = checked(TRUE, found).flagged
    assert {fault.problem for fault in flagged.faults} == {"taken_back"}
    assert flagged.instead.startswith(
        f"Nothing may be said about the speed of `{KERNEL}`: it was {word} (off by one)"
    )
    assert problems(f"Before it was {word} (event 7): {TRUE}", found) == set()


def test_the_sentence_of_what_was_taken_back_quotes_no_speed_and_stands() -> None:
    ended = Withdrawn(seq=7, event_type="ReplicationRecorded", word="contradicted", why="1.9x (1.8 to 2.0x) again")
    found = evidence(measurement(ended=ended))
    (sentence,) = kernel_sentences(measurement(ended=ended))
    assert "1.9x" not in sentence.text
    assert checked(sentence.text, found).flagged == ()


def test_a_measurement_without_a_verdict_carries_nothing() -> None:
    found = evidence(measurement(no_verdict="NOISE_TOO_HIGH"))
    assert "no_verdict" in problems(f"1.291x over torch.compile (1.288 to 1.295x) {WHERE}: event {SEQ}.", found)


def test_a_consumer_card_proves_nothing_about_a_data_centre_one() -> None:
    found = evidence(measurement(gpu="rtx4070"))
    text = speed(measurement(gpu="rtx4070"), measurement().speedups[0]).text.replace("GeForce RTX 4070", "H100 SXM")
    (flagged,) = checked(text, found).flagged
    (fault,) = flagged.faults
    assert fault.problem == "wrong_processor"
    assert "consumer" in fault.why


def test_each_sentence_has_its_line() -> None:
    page = f"# A page\n\nIt is fine.\nIt is 2x faster.\n\n- one\n- it is 3x faster\n\n{TRUE}\n"
    report = checked(page)
    assert [one.line for one in report.flagged] == [4, 7]
    assert [one.line for one in report.supported] == [9]


def test_blocks_of_code_are_read_only_if_asked() -> None:
    from forge.claims import check_page

    page = "text\n\n```text\nquiet\n2x faster\n```\n"
    assert checked(page).flagged == ()
    (flagged,) = check_page("page.md", page, evidence(), lambda _: None, code=True).flagged
    assert flagged.line == 5


def test_it_needs_neither_torch_nor_a_database() -> None:
    program = (
        "import sys; from forge.claims import check_page, gather; "
        "print(len(check_page('a.md', 'It is 2x faster.', gather([]), lambda _: None).flagged), "
        "*(name in sys.modules for name in ('torch', 'sqlalchemy')))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1", "False", "False"]


def test_one_ratio_for_two_kernels_has_to_hold_for_both() -> None:
    other = measurement({"compile": (2.312, 2.305, 2.318)}, gpu="rtx4070")
    found = evidence(measurement(), dataclasses.replace(other, seq=7))
    second = "triton_rmsnorm_rtx4070_bf16_b16_h4096_v1"
    said = "as fast as torch.compile"
    assert problems(f"{KERNEL} and {second} are 2.312x {said} (95 % interval 2.305 to 2.318x).", found)
    each = f"{KERNEL} is 1.291x {said} (1.288 to 1.295x), {second} is 2.312x {said} (2.305 to 2.318x)."
    swapped = each.replace("1.291x", "a").replace("2.312x", "1.291x").replace("a ", "2.312x ", 1)
    assert problems(each, found) == set()
    assert problems(swapped, found)


@pytest.mark.parametrize("said", ["{}, like {other}.", "Like {other}, {}.", "{}; the same holds for {other}."])
def test_a_ratio_is_said_of_a_kernel_that_is_named_behind_it_too(said: str) -> None:
    other = measurement({"compile": (1.05, 1.04, 1.06)}, gpu="rtx4070")
    found = evidence(measurement(), dataclasses.replace(other, seq=7))
    true = f"{KERNEL} is 1.291x as fast as torch.compile {TRUE_INTERVAL}"
    assert problems(f"{true}.", found) == set()
    assert problems(said.format(true, other="triton_rmsnorm_rtx4070_bf16_b16_h4096_v1"), found)


@pytest.mark.parametrize(
    ("said", "may_be_said"),
    [
        ("takes 1.892 us", True),
        ("takes 1.892e3 ns", True),
        ("takes 1.892 us, eager 22.881 us", True),
        ("has a floor of 0.681 us", True),
        ("takes 0.681 us", False),
        ("takes 22.881 us", False),
        ("takes 0 us", False),
        ("takes 0 ms", False),
        ("takes 0.00 s", False),
        ("takes 1e-7 s", False),
    ],
)
def test_a_time_is_the_kernels_own_unless_its_sentence_says_whose(said: str, may_be_said: bool) -> None:
    assert (problems(f"{KERNEL} {said} per call.") == set()) == may_be_said


def test_a_kernels_id_is_believed_before_the_sentences_around_it() -> None:
    true = f"{KERNEL} is 1.29x faster than torch.compile {TRUE_INTERVAL}."
    assert problems(f"Nothing is known of the H100 in fp16. {true}") == set()


def test_an_operation_is_known_however_it_is_spelled() -> None:
    for name in ("top-k softmax", "topk_softmax", "TopK softmax"):
        assert operations(f"a {name} kernel") == {"topk_softmax"}


def test_a_page_that_cites_too_much_for_its_figures_is_refused() -> None:
    cites = ", ".join(map(str, range(1000)))
    page = f"Events {cites} hold it." + " It is 1.29x as fast." * 21
    with pytest.raises(UsageError, match="21000 of a figure with a kernel or event"):
        checked(page)
