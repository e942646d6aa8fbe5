"""Which versions lie in a range."""

import pytest

from forge.contenders.versions import within


@pytest.mark.parametrize(
    ("version", "versions"),
    [
        ("0.5.2", ">=0.5,<1"),
        ("2.13.0+cpu", ">=2.9"),
        ("0.7.2.post1", ">=0.7.2"),
        ("1.0", "==1"),
        ("1.0.0", "<=1"),
        ("10.0", ">9"),
        ("1.2", "!=1.1"),
        ("1!2.0", ">=2"),
    ],
)
def test_a_version_inside_is_found_inside(version: str, versions: str) -> None:
    assert within(version, versions)


@pytest.mark.parametrize(
    ("version", "versions"),
    [
        ("0.4.9", ">=0.5"),
        ("0.10", "<0.9"),
        ("1.0rc1", ">=1"),
        ("1.0rc1", "<1"),
        ("1.0.dev3", ">=1.0"),
        ("1.1", "!=1.1"),
        ("unknown", ">=0"),
        ("", ">=0"),
    ],
)
def test_a_version_outside_or_unreadable_is_in_no_range(version: str, versions: str) -> None:
    assert not within(version, versions)
