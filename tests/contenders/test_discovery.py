"""Finding descriptions: Forge's own and those of installed packages, none of whose code runs here."""

import sys
from pathlib import Path

import pytest

from forge.contenders.discovery import find_contenders
from forge.contenders.installed import find_installed
from tests.contenders.distributions import call, described, install

SOFTMAX = described(call("softmax", "return x.softmax(-1)"))
EXPLODES = "raise SystemExit('a package with descriptions was imported')\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_package_adds_its_contenders_without_being_imported(site: Path) -> None:
    files = {"acme_forge/__init__.py": EXPLODES, "acme_forge/acme.toml": SOFTMAX}
    install(site, "acme-forge", "1.0", files, entry_points={"acme": "acme_forge"})
    catalogue = find_contenders()
    assert "acme.softmax" in {one.id for one in catalogue.contenders}
    assert "acme_forge" not in sys.modules
    assert not catalogue.unreadable
    assert [one.id for one in catalogue.of("softmax") if one.library.name == "acme"] == ["acme.softmax"]
    assert not [one for one in catalogue.of("rmsnorm") if one.library.name == "acme"]


def test_a_package_below_another_is_found_too(site: Path) -> None:
    files = {"acme_forge/__init__.py": EXPLODES, "acme_forge/below/acme.toml": SOFTMAX}
    install(site, "acme-forge", "1.0", files, entry_points={"acme": "acme_forge.below"})
    assert "acme.softmax" in {one.id for one in find_contenders().contenders}


@pytest.mark.parametrize(
    ("files", "value", "said"),
    [
        ({"acme_forge/__init__.py": EXPLODES}, "acme_forge", "no description"),
        (
            {"acme_forge/__init__.py": EXPLODES, "acme_forge/a.toml": "[library"},
            "acme_forge",
            "can't be read as TOML",
        ),
        (
            {"acme_forge/__init__.py": EXPLODES, "acme_forge/a.toml": SOFTMAX},
            "not_there",
            "expected an installed package",
        ),
        ({"acme_forge/__init__.py": EXPLODES, "acme_forge/a.toml": SOFTMAX}, "acme_forge.x", "expected an installed"),
        (
            {"acme_forge/__init__.py": EXPLODES, "acme_forge/a.toml": SOFTMAX.replace('"acme"', '"torch"')},
            "acme_forge",
            "described already",
        ),
    ],
)
def test_an_entry_point_that_cannot_be_read_is_listed_and_hides_no_other(
    site: Path, files: dict[str, str], value: str, said: str
) -> None:
    install(site, "acme-forge", "1.0", files, entry_points={"acme": value})
    good = {"other_forge/__init__.py": "", "other_forge/o.toml": SOFTMAX.replace('name = "acme"', 'name = "other"')}
    install(site, "other-forge", "1.0", good, entry_points={"other": "other_forge"})
    catalogue = find_contenders()
    assert [one.entry_point for one in catalogue.unreadable] == ["acme"]
    assert said in catalogue.unreadable[0].detail
    assert "other.softmax" in {one.id for one in catalogue.contenders}


def test_an_installed_version_is_read_from_its_metadata(site: Path) -> None:
    install(site, "acme-kernels", "2.1", {"acme_kernels.py": EXPLODES})
    found = find_installed("acme-kernels")
    assert found is not None
    assert (found.version, found.folder) == ("2.1", site.resolve())
    assert find_installed("acme-kernels-2") is None


def test_metadata_without_a_version_is_no_installed_package(site: Path) -> None:
    install(site, "acme-kernels", "2.1", {"acme_kernels.py": ""})
    (site / "acme_kernels-2.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-kernels\n")
    assert find_installed("acme-kernels") is None
