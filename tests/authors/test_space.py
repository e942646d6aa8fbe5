"""What a template's space may be, and how its settings become candidates."""

import ast
import json
import random

import orjson
import pytest

from forge.authors.search.constants import constants_of
from forge.authors.search.constraint import parse_constraint
from forge.authors.search.template import parse_template
from forge.domain.authoring import Setting
from forge.domain.candidate import Metadata
from forge.errors import UsageError

from .templates import FILES, KERNEL, WIDE, template


def test_the_constants_of_a_kernel_and_of_its_compiled_text_are_found() -> None:
    found = {name: one.value for name, one in constants_of(KERNEL, "CPP_SOURCE").items()}
    assert found == {
        "BLOCK": 64, "WARPS": 4, "FAST": True, "SHARE": 0.5, "ORDER": "rows", "BELOW": -3,
        "UNROLL": 2, "TILE": 16, "STREAM": False,
    }  # fmt: skip


def test_a_setting_changes_the_named_constants_and_nothing_else() -> None:
    made = template(
        {
            "BLOCK": [64, 128],
            "ORDER": ["rows", "columns"],
            "BELOW": [-3, -5],
            "TILE": [16, 8],
            "STREAM": [False, True],
        }
    )
    draft = made.draft(Setting(values={"BLOCK": 128, "ORDER": "columns", "BELOW": -5, "TILE": 8, "STREAM": True}))
    before, after = KERNEL.splitlines(), draft.files["kernel.py"].splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [
        "BLOCK = 128",
        "ORDER = 'columns'",
        "BELOW = -5",
        "static constexpr int TILE = 8;  // columns",
        "constexpr bool STREAM = true;",
    ]
    assert ast.parse(draft.files["kernel.py"])


def test_a_draft_is_an_ordinary_candidate_whose_hypothesis_names_what_changed() -> None:
    made = template(WIDE)
    draft = made.draft(Setting(values={**made.space.own.values, "WARPS": 8}))
    metadata = Metadata.model_validate_json(draft.files["metadata.json"])
    assert metadata.hypothesis == draft.hypothesis
    assert "WARPS 4 -> 8" in draft.hypothesis
    assert metadata.author is None
    assert draft.candidate_sha256 not in (None, made.own.candidate_sha256)


def test_a_space_of_a_billion_settings_is_drawn_from_without_listing_it() -> None:
    lines = "".join(f"P{place} = 0\n" for place in range(9))
    files = FILES | {"kernel.py": (KERNEL + lines).encode()}
    parameters = [{"name": f"P{place}", "values": list(range(10))} for place in range(9)]
    made = parse_template(
        files, orjson.dumps({"parameters": parameters, "constraints": ["P0 + P1 <= 3", "P2 == P3"]})
    )
    assert made.space.points == 10**9
    drawn = [made.space.draw(random.Random(seed)) for seed in range(50)]
    assert all(map(made.space.allows, drawn))
    assert len({one.sha256 for one in drawn}) > 40


def test_a_space_with_hardly_any_setting_is_walked() -> None:
    lines = "".join(f"P{place} = 0\n" for place in range(12))
    files = FILES | {"kernel.py": (KERNEL + lines).encode()}
    parameters = [{"name": f"P{place}", "values": list(range(10))} for place in range(12)]
    tight = ["P0 + P1 + P2 + P3 + P4 + P5 + P6 + P7 + P8 + P9 + P10 + P11 <= 1"]
    made = parse_template(files, orjson.dumps({"parameters": parameters, "constraints": tight}))
    drawn = {made.space.draw(random.Random(seed)).sha256 for seed in range(30)}
    assert 2 <= len(drawn) <= 13


def test_neighbours_differ_by_one_step_and_meet_the_constraints() -> None:
    made = template({"BLOCK": [16, 32, 64, 128], "WARPS": [2, 4, 8]}, ["BLOCK // WARPS >= 16"])
    near = [dict(one.values) for one in made.space.neighbours(made.space.own)]
    assert near == [{"BLOCK": 128, "WARPS": 4}, {"BLOCK": 64, "WARPS": 2}]


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ("BLOCK ** 2 <= 9", "expected comparisons"),
        ("__import__('os')", "expected comparisons"),
        ("BLOCK.real == 1", "expected comparisons"),
        ("[BLOCK] == 1", "expected comparisons"),
        ("(lambda: 1)() == 1", "expected comparisons"),
        ("BLOCK", "expected comparisons"),
        ("not BLOCK == 1", "expected comparisons"),
        ("BLOCK == 1e400", "expected comparisons"),
        ("BLOCK ==", "invalid syntax"),
        ("", "invalid syntax"),
        ("(" * 250 + "BLOCK" + ")" * 40, "expected"),
        ("BLOCK < " + "1" * 300, "at most 300"),
        ("BLOK == 1", "no parameter is called 'BLOK'"),
    ],
)
def test_a_constraint_of_another_form_is_refused(constraint: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_constraint(constraint, frozenset({"BLOCK"}))


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        ("BLOCK * 4 * WARPS <= 1024", True),
        ("BLOCK % WARPS == 0 and ORDER == 'rows'", True),
        ("BLOCK < 3 or WARPS > 3", True),
        ("16 <= BLOCK < 64", False),
        ("BLOCK % (WARPS - 4) == 0", False),  # a remainder by zero is no setting
        ("BLOCK // 0 == 0", False),
        ("ORDER < BLOCK", False),
        ("ORDER * 2 == 4", False),
        ("ORDER % 2 == 4", False),
    ],
)
def test_a_constraint_says_which_settings_are_allowed(constraint: str, holds: bool) -> None:
    parsed = parse_constraint(constraint, frozenset({"BLOCK", "WARPS", "ORDER"}))
    assert parsed.holds({"BLOCK": 64, "WARPS": 4, "ORDER": "rows"}) is holds


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "expected an object"),
        (b"{}", "parameters: missing"),
        (b'{"parameters": []}', "at least 1"),
        (b'{"parameters": [{"name": "BLOCK", "values": []}]}', "at least 1"),
        (b'{"parameters": [{"name": "BLOCK", "values": [64]}], "more": 1}', "more"),
        (b'{"parameters": [{"name": "B-1", "values": [64]}]}', "form"),
        (b'{"parameters": [{"name": "GONE", "values": [1]}]}', "no constant 'GONE'"),
        (b'{"parameters": [{"name": "TWICE", "values": [1, 2]}]}', "no constant 'TWICE'"),
        (b'{"parameters": [{"name": "CPP_SOURCE", "values": ["x"]}]}', "no constant 'CPP_SOURCE'"),
        (b'{"parameters": [{"name": "BLOCK", "values": [32, 128]}]}', "isn't among the values"),
        (b'{"parameters": [{"name": "BLOCK", "values": [64, 64]}]}', "a value twice"),
        (b'{"parameters": [{"name": "BLOCK", "values": [64, 1e30]}]}', "past 2\\^53"),
        (b'{"parameters": [{"name": "BLOCK", "values": [64]}, {"name": "BLOCK", "values": [64]}]}', "given twice"),
        (b'{"parameters": [{"name": "BLOCK", "values": [64, 128]}], "constraints": ["BLOCK > 64", "BLOCK < 100"]}',
         "own setting .BLOCK=64. doesn't meet 'BLOCK > 64'"),
        (b'{"parameters": [{"name": "BLOCK", "values": [64, NaN]}]}', "not JSON"),
        (b" " * 70000, "more than"),
    ],
)  # fmt: skip
def test_a_bad_space_is_refused_with_what_was_expected(space: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_template(FILES, space)


def test_a_space_of_too_many_values_is_refused() -> None:
    many = json.dumps({"parameters": [{"name": "BLOCK", "values": list(range(64, 200))}]}).encode()
    with pytest.raises(UsageError, match="at most 64"):
        parse_template(FILES, many)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"kernel.py": b"def ("}, "doesn't parse"),
        ({"kernel.py": b"\xff"}, "UTF-8"),
        ({"metadata.json": b"{"}, "not JSON"),
        ({"metadata.json": b'{"name": "x"}'}, "metadata.json: op"),
    ],
)
def test_a_bad_template_is_refused(broken: dict[str, bytes], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_template(FILES | broken, b'{"parameters": [{"name": "BLOCK", "values": [64]}]}')


def test_a_value_for_compiled_text_is_one_word() -> None:
    with pytest.raises(UsageError, match="expected one word"):
        template({"TILE": [16, "8; system(0)"]})


def test_numbers_past_every_float_meet_no_constraint() -> None:
    names = frozenset({"BLOCK", "SHARE"})
    product = "*".join(["BLOCK"] * 22)
    for text in (f"{product} * SHARE > 1", f"SHARE - {product} < 1", f"{product} // SHARE > 1"):
        assert not parse_constraint(text, names).holds({"BLOCK": 2**53, "SHARE": 0.5})
    assert parse_constraint(f"{product} > SHARE", names).holds({"BLOCK": 2**53, "SHARE": 0.5})
