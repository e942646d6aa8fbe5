"""A torch extension is built with the host's flags, into the folder where its shared objects are looked for."""

import os
import types

import pytest

from forge.guest import extension
from forge.guest.extension import _load_with


def test_a_folder_of_the_candidates_own_choice_is_left_out() -> None:
    given: dict[str, object] = {}

    def load(name: str, **options: object) -> types.ModuleType:
        given.update(options)
        return types.ModuleType(name)

    _load_with(load, ["-g"], "own", extra_cflags=["-O3"], build_directory="/tmp/own")
    assert given == {"extra_cflags": ["-O3", "-g"], "extra_ldflags": ["-g"]}


def test_an_extension_is_built_in_the_hosts_folder_whatever_the_file_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "_FOLDER_AT_START", "/scratch/torch_extensions")
    monkeypatch.setenv(extension.FOLDER, "/elsewhere/own")
    _load_with(lambda *_, **__: types.ModuleType("own"), [], "own")
    assert os.environ[extension.FOLDER] == "/scratch/torch_extensions"
