"""Screening contenders: with their package and without it, an old one, and ones that raise, are wrong or meddle."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.app.phases.replication import with_baseline
from forge.contenders.discovery import ContenderCatalogue, Described, find_contenders
from forge.domain.contender import ContenderAbsent, ContenderFailed, ContenderStanding, MeasuredInFull, ScreenedOut
from forge.domain.policy import Policy
from forge.errors import EnvironmentUnfit
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.timing.screening import ContenderScreening, fastest, screen
from forge.operations import OPERATIONS
from forge.sandbox.session import GuestFunction
from tests.candidates import job_for
from tests.contenders.distributions import call, described, install

pytestmark = pytest.mark.usefixtures("walls")
LIBRARY = """
import torch

STATE = []


def softmax(x):
    return torch.nn.functional.softmax(x, -1)


def raises(x):
    raise RuntimeError("columns must be at most 64")


def wrong_in_bf16(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)


def changes_its_input(x):
    y = torch.softmax(x, -1)
    x.zero_()
    return y


def changes_the_process(x):
    torch.backends.cuda.enable_flash_sdp(not torch.backends.cuda.flash_sdp_enabled())
    return torch.softmax(x, -1)


def draws(x):
    torch.rand(1)
    return torch.softmax(x, -1)


def draws_a_name(x):
    import random

    random.choice("abc")
    return torch.softmax(x, -1)


def sets_back(x):
    before = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(not before)
    try:
        return torch.softmax(x, -1)
    finally:
        torch.backends.cuda.enable_flash_sdp(before)


def slow(x):
    for _ in range(200):
        y = torch.softmax(x, -1)
    return y
"""
NAMES = (
    "softmax",
    "raises",
    "wrong_in_bf16",
    "changes_its_input",
    "changes_the_process",
    "draws",
    "draws_a_name",
    "sets_back",
    "slow",
)


def job(dtype: str = "bf16") -> Job:
    asked = replace(
        job_for("", language="torch"),
        operation=OPERATIONS["softmax"],
        shape={"batch": 16, "hidden_size": 256},
        policy=Policy(memory_limit_bytes=2**30),
    )
    return replace(asked, dtype=dtype)  # type: ignore[arg-type]  # a type's name


def contenders(*names: str, more: str = "") -> str:
    calls = (call(name, f"import acme_kernels\nreturn acme_kernels.{name}(x)", more=more) for name in names)
    return described(*calls)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def installed(site: Path, text: str, *, version: str | None = "2.1") -> ContenderCatalogue:
    """Install a package with descriptions, and the library that they describe unless it has no version."""
    files = {"acme_forge/__init__.py": "", "acme_forge/acme.toml": text}
    install(site, "acme-forge", "1.0", files, entry_points={"acme": "acme_forge"})
    if version is not None:
        install(site, "acme-kernels", version, {"acme_kernels.py": LIBRARY})
    found = find_contenders()
    acme: tuple[Described, ...] = tuple(one for one in found.contenders if one.library.name == "acme")
    return ContenderCatalogue(acme, found.unreadable)


def by_name(screening: ContenderScreening) -> dict[str, ContenderStanding]:
    return {one.contender.removeprefix("acme."): one for one in screening.standings}


@pytest.mark.slow
def test_only_those_that_are_right_and_leave_no_trace_are_baselines(site: Path) -> None:
    screening = screen(job(), installed(site, contenders(*NAMES)), progress=lambda _: None)
    found = by_name(screening)
    for name in ("softmax", "draws_a_name", "sets_back"):
        assert isinstance(found[name].standing, MeasuredInFull | ScreenedOut), found[name]
        assert found[name].name == f"contender:acme.{name}@2.1"
        assert found[name].licence == "MIT"
    assert isinstance(found["slow"].standing, ScreenedOut), found["slow"]
    expected = {
        "raises": ("RUNTIME_ERROR", "columns must be at most 64"),
        "wrong_in_bf16": ("INCORRECT_NUMERICAL", ""),
        "changes_its_input": ("INPUT_MUTATED", ""),
        "changes_the_process": ("STATE_CARRIED", "which kinds of attention torch may use"),
        "draws": ("STATE_CARRIED", "torch's generator"),
    }
    for name, (code, said) in expected.items():
        standing = found[name].standing
        assert isinstance(standing, ContenderFailed), found[name]
        assert (
            standing.reason.code in {code, "NON_FINITE"} if name == "wrong_in_bf16" else standing.reason.code == code
        )
        assert said in standing.reason.message
    chosen = {one.name for one in screening.in_full}
    assert chosen
    assert chosen <= {f"contender:acme.{name}@2.1" for name in ("softmax", "draws_a_name", "sets_back")}


def test_a_contender_that_fails_while_it_is_timed_is_left_out_of_the_screening(site: Path) -> None:
    screening = screen(job(), installed(site, contenders("softmax")), progress=lambda _: None)
    name = "contender:acme.softmax@2.1"
    reason = ContenderFailed.model_validate({"reason": {"code": "INCORRECT_NUMERICAL", "message": "wrong"}}).reason
    after = screening.without(name, Failed(reason=reason, observed="", threshold=""))
    assert not after.in_full
    assert isinstance(after.standings[0].standing, ContenderFailed)
    assert screening.beside(frozenset()) is not None
    assert after.beside(frozenset({name})) is None


@pytest.mark.parametrize(
    ("version", "cause", "said"),
    [
        (None, "not_installed", "no package 'acme-kernels' is installed here"),
        ("1.9", "version", "version '1.9' of acme-kernels: expected >=2,<3"),
        ("3.0", "version", "version '3.0' of acme-kernels: expected >=2,<3"),
    ],
)
def test_a_package_that_is_missing_or_of_another_version_is_said_to_be(
    site: Path, version: str | None, cause: str, said: str
) -> None:
    screening = screen(job(), installed(site, contenders("softmax"), version=version), progress=lambda _: None)
    (one,) = screening.standings
    assert isinstance(one.standing, ContenderAbsent)
    assert (one.standing.cause, one.standing.detail, one.version) == (cause, said, version)
    assert not screening.in_full


@pytest.mark.parametrize(
    ("required", "said"),
    [
        (
            "acme",
            "requires the contender 'acme.softmax': no package 'acme-kernels' is installed here; install it, or",
        ),
        ("acme.softmax", "requires the contender 'acme.softmax': no package 'acme-kernels' is installed here"),
        (
            "acm",
            "requires the contender 'acm', which no description here names; libraries with a description: acme; take",
        ),
    ],
)
def test_a_required_contender_that_is_missing_ends_the_screening(site: Path, required: str, said: str) -> None:
    policy = Policy(baselines=("eager", "contenders"), required_contenders=(required,))
    described_here = installed(site, contenders("softmax"), version=None)
    with pytest.raises(EnvironmentUnfit, match=said):
        screen(replace(job(), policy=policy), described_here, progress=lambda _: None)


def test_a_required_contender_that_does_not_apply_is_not_missed(site: Path) -> None:
    policy = Policy(baselines=("eager", "contenders"), required_contenders=("acme",))
    text = contenders("softmax", more="axes = { hidden_size = { most = 64 } }")
    described_here = installed(site, text, version=None)
    (one,) = screen(replace(job(), policy=policy), described_here, progress=lambda _: None).standings
    assert isinstance(one.standing, ContenderAbsent)


def test_a_contender_that_does_not_apply_here_is_said_not_to(site: Path) -> None:
    text = contenders("softmax", more="axes = { hidden_size = { most = 64 } }")
    (one,) = screen(job(), installed(site, text), progress=lambda _: None).standings
    assert isinstance(one.standing, ContenderAbsent)
    assert (one.standing.cause, one.standing.detail) == ("not_applicable", "hidden_size is 256: expected at most 64")


def test_descriptions_that_cannot_be_read_are_named_in_the_screening(site: Path) -> None:
    (one,) = screen(job(), installed(site, "[library"), progress=lambda _: None).standings
    assert isinstance(one.standing, ContenderAbsent)
    assert one.standing.cause == "unreadable"
    assert one.package == "acme"


def test_the_fastest_two_are_measured_in_full_and_none_that_is_far_slower() -> None:
    assert fastest({"a": 100.0, "b": 101.0, "c": 102.0}) == {"a", "b"}
    assert fastest({"a": 100.0, "b": 126.0}) == {"a"}
    assert fastest({}) == frozenset()


def test_a_replication_measures_the_promotion_s_baseline_though_others_are_faster_now() -> None:
    function = GuestFunction("contender.py", "contender")
    right = tuple(
        PresentContender(id=f"acme.{name}", package="acme", version="2", licence="MIT", source=b"", function=function)
        for name in ("fast", "once")
    )
    screening = ContenderScreening(right, frozenset({"contender:acme.fast@2"}), ())
    both = with_baseline(screening, "contender:acme.once@2")
    assert [one.name for one in both.in_full] == ["contender:acme.fast@2", "contender:acme.once@2"]
    for not_a_right_contender in ("compile", "contender:acme.gone@2"):
        assert with_baseline(screening, not_a_right_contender) == screening
