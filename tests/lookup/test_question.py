"""A question that is none is refused in one clear sentence."""

import pytest

from forge.errors import UnknownName, UsageError
from forge.lookup import Policy
from forge.lookup.question import slug
from tests.lookup.asking import ASK, BETWEEN, published
from tests.projections.histories import promoted, revoke
from tests.projections.values import EDGES, task

BAD_SHAPES = [
    {},
    {"batch": 16.0, "hidden_size": 4096},
    {"batch": "16", "hidden_size": 4096},
    {"batch": -1, "hidden_size": 4096},
    {"batch": True, "hidden_size": 4096},
    {"batch": float("nan"), "hidden_size": 4096},
    {"batch": None, "hidden_size": 4096},
    {"batch": [16], "hidden_size": 4096},
    {"batch": 2**63, "hidden_size": 4096},
    {"batch": 10**5000, "hidden_size": 4096},
    {1: 16, 2: 4096},
    {"batch": 16, 1: 4096},
    [16, 4096],
    ["batch", "hidden_size"],
    "batch=16",
    16,
    None,
]


@pytest.mark.parametrize("shape", BAD_SHAPES, ids=lambda shape: str(shape)[:40] if shape != BAD_SHAPES[9] else "long")
def test_a_shape_that_is_none_is_refused(history, tmp_path, shape):
    promoted(history)
    with pytest.raises(UsageError, match="bad shape"):
        published(history, tmp_path).lookup(**{**ASK, "shape": shape})


@pytest.mark.parametrize("size", [True, 1.0])
def test_what_equals_a_size_that_was_asked_before_is_still_no_size(history, tmp_path, size):
    promoted(history, wanted=task(shape={"batch": 1, "hidden_size": 4096}))
    registry = published(history, tmp_path)
    assert registry.lookup(**{**ASK, "shape": {"batch": 1, "hidden_size": 4096}}).match == "exact"
    with pytest.raises(UsageError, match="bad shape"):
        registry.lookup(**{**ASK, "shape": {"batch": size, "hidden_size": 4096}})


@pytest.mark.parametrize("name", ["op", "gpu", "dtype", "language"])
@pytest.mark.parametrize("value", [3, b"h200", ["h200"], {}])
def test_a_slot_of_other_things_than_names_is_refused(history, tmp_path, name, value):
    with pytest.raises(UsageError, match="bad slot"):
        published(history, tmp_path).lookup(**{**ASK, name: value})


@pytest.mark.parametrize("policy", [None, "nearest", {"shape": "nearest"}])
def test_a_policy_is_a_policy(history, tmp_path, policy):
    with pytest.raises(UsageError, match="bad policy"):
        published(history, tmp_path).lookup(**ASK, policy=policy)


@pytest.mark.parametrize("octaves", [float("nan"), float("inf"), 10**400, -1, -0.5, True, "1", [1]])
def test_a_distance_that_is_none_is_refused(octaves):
    with pytest.raises(UsageError, match="bad max_octaves"):
        Policy(max_octaves=octaves)


def test_a_kernel_of_another_gpu_says_so_before_anything_about_its_evidence(history, tmp_path):
    kernel_id = promoted(history)
    revoke(history, kernel_id)
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK).rejected[0][1].startswith("revoked: ")
    for other in ({"gpu": "cpu"}, {"gpu": "h100"}):
        (slot,) = other.values()
        assert registry.lookup(**{**ASK, **other}).rejected == [(kernel_id, f"gpu h200, asked {slot}")]
    assert registry.lookup(**{**ASK, "dtype": "fp32"}).rejected == [(kernel_id, "dtype bf16, asked fp32")]


MOMENTS = ["", "yesterday", "2026-13-01", "2026-01-31T12:00:00", 2026, b"2026-01-31", "0001-01-01T00:00:00+23:59"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_moment_that_is_none_is_refused(moment):
    with pytest.raises(UsageError, match=r"bad day .* of the oldest measurement"):
        Policy(measured_since=moment)


@pytest.mark.parametrize(
    ("since", "match"),
    [
        ("2026-01-02", "exact"),
        ("2026-01-02T03:04:00Z", "exact"),
        ("2026-01-02T05:04:00+02:00", "exact"),
        ("2026-01-03", "none"),
        ("2026-01-02T03:05:00Z", "none"),
    ],
)
def test_evidence_older_than_the_caller_accepts_is_passed_over(history, tmp_path, since, match):
    promoted(history)
    found = published(history, tmp_path).lookup(**ASK, policy=Policy(measured_since=since))
    assert found.match == match
    if match == "none":
        assert found.rejected[0][1].startswith("measured at 2026-01-02T03:04:00")


@pytest.mark.parametrize("bad", [{"abi_key": 3}, {"abi_key": ["a"]}, {"gpu_arch": b"sm_90"}], ids=str)
def test_a_policy_names_things_by_text(bad):
    with pytest.raises(UsageError, match="expected text"):
        Policy(**bad)


@pytest.mark.parametrize("deprecated", [0, 1, "yes", None])
def test_deprecated_is_yes_or_no(deprecated):
    with pytest.raises(UsageError, match="bad deprecated policy"):
        Policy(deprecated=deprecated)


def test_equal_policies_get_equal_answers_and_others_their_own(history, tmp_path):
    promoted(history, shapes=EDGES)
    registry = published(history, tmp_path)
    asked = {**ASK, "shape": BETWEEN}
    found = registry.lookup(**asked, policy=Policy(shape="nearest"))
    assert found.match == "nearest"
    assert registry.lookup(**asked, policy=Policy(shape="nearest")) is found
    assert registry.lookup(**asked).match == "none"
    assert registry.lookup(**asked, policy=Policy(shape="nearest", max_octaves=0.01)).match == "none"


def test_a_misspelt_policy_is_refused():
    for bad in ({"shape": "close"}, {"gpu": "any"}, {"shape": None}):
        with pytest.raises(UnknownName):
            Policy(**bad)


@pytest.mark.parametrize("name", ["h200", "H200", "NVIDIA H200", "nvidia_x"])
def test_a_gpu_is_asked_for_by_its_drivers_name_too(name: str) -> None:
    assert slug(name) == ("nvidiax" if name == "nvidia_x" else "h200")
    assert slug("NVIDIA GeForce RTX 4070") == "rtx4070"
