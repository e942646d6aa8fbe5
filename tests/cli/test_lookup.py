"""lookup says what answers under which policy, on what evidence, and what is wrong with a policy."""

import shutil

import pytest

from tests.cli.asking import ask
from tests.lookup.asking import publish
from tests.projections.histories import benchmarked, opened
from tests.projections.values import EDGES, captured, task


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A workspace that published two kernels, for one GPU each, of the same architecture."""
    folder = tmp_path_factory.mktemp("home")
    history = opened()
    runs = [
        benchmarked(history, shapes=EDGES),
        benchmarked(history, wanted=task(op="softmax", gpu="h100"), shapes=EDGES),
    ]
    kernels = {run.promote(): run.name for run in runs}
    history.add(captured("h200"))
    publish(history, folder)
    for kernel_id, name in kernels.items():
        source = folder / "kernel_registry" / "kernels" / kernel_id / "kernel.py"
        source.parent.mkdir(parents=True)
        source.write_text(str((name, "kernel.py")))
    return folder


def slot(op: str = "rmsnorm", shape: str = "batch=20,hidden_size=5000") -> tuple[str, ...]:
    return ("lookup", "--op", op, "--gpu", "h200", "--dtype", "bf16", "--shape", shape)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ((), "none"),
        (("--nearest",), "nearest"),
        (("--nearest", "--max-octaves", "0.1"), "none"),
        (("--nearest", "--since", "2026-01-02"), "nearest"),
        (("--nearest", "--since", "2026-02-01"), "none"),
        (("--nearest", "--language", "triton"), "nearest"),
        (("--nearest", "--language", "cpp"), "none"),
    ],
)
def test_a_policy_decides_what_may_answer(home, options, match):
    answer = ask(*slot(), *options, "--home", home, "--json")
    assert (answer.document["match"], answer.status) == (match, 0 if match != "none" else 1)


def test_another_gpu_of_the_architecture_answers_only_if_asked_for(home):
    at = slot("softmax", "batch=16,hidden_size=4096")
    assert ask(*at, "--home", home, "--json").document["match"] == "none"
    assert ask(*at, "--family", "--home", home, "--json").document["match"] == "family"


@pytest.mark.parametrize(("gpu", "match"), [("h100-pcie", "family"), ("a100", "none")])
def test_a_gpu_that_nothing_ran_on_goes_by_the_catalogues_architecture_and_that_is_said(home, gpu, match):
    asked = ("lookup", "--op", "softmax", "--gpu", gpu, "--dtype", "bf16", "--shape", "batch=16,hidden_size=4096")
    answer = ask(*asked, "--family", "--home", home, "--json")
    assert (answer.document["match"], answer.document["ran_on_gpu"]) == (match, False)
    assert f"note: {gpu!r} is a GPU that nothing ran on" in answer.err
    assert answer.document["gpu_arch"] in answer.err
    assert "of None" not in str(answer.document["rejected"])
    assert "nothing ran on" not in ask(*asked, "--home", home).err
    on_another = ask(*slot("softmax", "batch=16,hidden_size=4096"), "--family", "--home", home, "--json")
    assert (on_another.document["ran_on_gpu"], on_another.err) == (True, "")


@pytest.mark.parametrize("content", [b"altered", None], ids=["altered", "missing"])
def test_a_file_that_is_not_the_promoted_one_is_not_named(home, tmp_path, content):
    copy = shutil.copytree(home, tmp_path / "copy")
    (source,) = copy.glob("kernel_registry/kernels/*rmsnorm*/kernel.py")
    source.write_bytes(content) if content else source.unlink()
    answer = ask(*slot(), "--nearest", "--home", copy)
    assert (answer.status, answer.out) == (1, "")
    assert "kernel.py" in answer.error
    assert "publish the registry again" in answer.error


def test_the_answer_names_its_evidence_and_its_generation(home):
    answer = ask(*slot(), "--nearest", "--home", home, "--json").document
    assert answer["evidence"]["shape"] == {"batch": 16, "hidden_size": 4096}
    assert answer["evidence"]["low"] < answer["evidence"]["speedup"] < answer["evidence"]["high"]
    assert answer["evidence"]["measured_at"].startswith("2026-01-02T")
    assert len(answer["generation"]) == 64
    assert answer["ledger_seq"] > answer["evidence"]["promoted_seq"]
    table = ask(*slot(), "--nearest", "--home", home).out
    assert "batch=16,hidden_size=4096" in table
    assert "eager" in table


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-octaves", "nan"), "bad max_octaves nan"),
        (("--max-octaves", "-1"), "bad max_octaves -1.0"),
        (("--shape", "batch=0,hidden_size=5000"), "--shape is given twice"),
        (("--since", "yesterday"), "bad day 'yesterday' of the oldest measurement"),
        (("--language", "pascal"), "unknown language 'pascal'"),
    ],
)
def test_a_policy_that_is_none_is_refused(home, options, said):
    answer = ask(*slot(), *options, "--home", home)
    assert answer.status == 2
    assert said in answer.err


FORMS = [(), ("--json",), ("--nearest",), ("--since", "2020-01-01"), ("--since", "2099-01-01"), ("--language", "cpp")]


@pytest.mark.parametrize("form", [*FORMS, ("--language", "triton"), ("--resident",)], ids="".join)
def test_a_plain_question_gets_the_whole_commands_answer(home, form, monkeypatch):
    plain = (*slot(shape="batch=16,hidden_size=4096"), "--home", str(home), *form)
    quick = ask(*plain)
    whole = ask(*plain, "--max-octaves", "1000")  # an option that only the whole command knows, and that bars nothing
    assert (quick.status, quick.out, quick.err) == (whole.status, whole.out, whole.err) != (0, "", "")


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        (("--gpu", "h100"), 1),
        (("--shape", "batch=17,hidden_size=4097"), 1),
        (("--dtype", "bf16"), 1),
        (("--gpu", "h201"), 2),
        (("--op", "rmsnrm"), 2),
        (("--dtype", "fp31"), 2),
        (("--shape", "batch=16"), 2),
        (("--shape", "batch=16,hidden_size=0"), 2),
        (("--shape", "batch=16,hidden_size=4096,batch=16"), 2),
        pytest.param(("--shape", f"batch={'9' * 5000},hidden_size=4096"), 2, id="a size of 5000 digits"),
    ],
    ids=str,
)
def test_what_no_kernel_answers_is_answered_as_by_the_whole_command(home, changed, status):
    asked = dict(zip(slot()[1::2], slot()[2::2], strict=True)) | dict([changed])
    answer = ask("lookup", *(part for pair in asked.items() for part in pair), "--home", home)
    assert answer.status == status
    assert "try: forge" in answer.err
    if status == 1:
        whole = ask(
            "lookup", *(part for pair in asked.items() for part in pair), "--home", home, "--max-octaves", "9"
        )
        assert (answer.out, answer.err) == (whole.out, whole.err)


def test_a_kernel_whose_file_was_changed_is_refused_by_a_plain_question_too(home, tmp_path):
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    for source in copy.rglob("kernel.py"):
        source.write_text("changed")
    answer = ask(*slot(shape="batch=16,hidden_size=4096"), "--home", copy)
    assert answer.status != 0
    assert "BLOB_CORRUPT" in answer.err
