"""A torch extension is built with the host's flags, into the folder where its shared objects are looked for."""

import types

from forge.guest.extension import _load_with


def test_a_folder_of_the_candidates_own_choice_is_left_out() -> None:
    given: dict[str, object] = {}

    def load(name: str, **options: object) -> types.ModuleType:
        given.update(options)
        return types.ModuleType(name)

    _load_with(load, ["-g"], "own", extra_cflags=["-O3"], build_directory="/tmp/own")
    assert given == {"extra_cflags": ["-O3", "-g"], "extra_ldflags": ["-g"]}
