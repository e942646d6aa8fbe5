"""Answers a plain `forge lookup` without the parser, the catalogue and the ledger's code, which take half a second.

Only a question about an operation, axes, a type and a GPU that are known here is answered. All others, and all
mistakes, are left to the whole command, which says what is wrong.
"""

from collections.abc import Sequence
from pathlib import Path

from forge.cli.plain_options import HOME, JSON, plain_options

NEEDED = ("--op", "--gpu", "--dtype", "--shape")
"""Options that every question has."""
VALUES = (*NEEDED, HOME, "--since", "--language")
"""Options with a value that a plain question may have."""
MOST_DIGITS = 18
"""Number of digits of a size, at most: int() refuses 5000, and no size has 18."""
FLAGS = (JSON, "--nearest", "--deprecated", "--replicated", "--resident")
"""Options without a value that a plain question may have."""
REFUSED = 1
"""Exit status where no kernel answers."""
LARGEST_SIZE = 2**31
"""Largest size of an axis, as `parse_shape` takes it."""
PROCESSOR, PROCESSOR_ARCH = "cpu", "host"
"""Slot of a processor in the registry, and its architecture in the catalogue."""


def quick_lookup(arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of a plain lookup; return False if the whole command must answer."""
    parsed = plain_options(arguments, valued=VALUES, flags=FLAGS)
    if parsed is None or not {*NEEDED} <= parsed[0].keys():
        return False
    asked, _ = parsed
    from forge.errors import ForgeError

    try:
        document = _answered(asked)
    except (ForgeError, OSError):
        return False
    if document is None:
        return False
    if JSON in asked:
        from forge.cli.output import emit_json

        emit_json(document)
    else:
        from forge.cli.lookup_tables import show_lookup

        show_lookup(document)
    if document["match"] == "none":
        from forge.cli.suggest import suggest

        suggest("try", "forge kernel list")
        raise SystemExit(REFUSED)
    return True


def _sizes(shape: str) -> dict[str, int] | None:
    """Return the sizes of `batch=16,hidden_size=4096`; None for any other form."""
    sizes: dict[str, int] = {}
    for item in shape.split(","):
        axis, _, size = item.partition("=")
        is_number = size.isascii() and size.isdigit() and len(size) <= MOST_DIGITS
        if axis in sizes or not (axis.isidentifier() and is_number):
            return None
        sizes[axis] = int(size)
    return sizes


def _answered(asked: dict[str, str]) -> dict[str, object] | None:
    """Return the answer of the published registry; None if a name isn't known or a decision isn't published yet."""
    from forge.app.kernels.lookup_document import lookup_document
    from forge.app.user.home import REGISTRY_FOLDER, find_home
    from forge.lookup import Policy, Registry

    sizes = _sizes(asked["--shape"])
    if sizes is None:
        return None
    home = find_home(Path(asked[HOME]) if HOME in asked else None)
    registry, gpu = Registry.open(home / REGISTRY_FOLDER), asked["--gpu"]
    arch = PROCESSOR_ARCH if gpu == PROCESSOR else registry.gpus.get(gpu)
    if arch is None or registry.health().stale:
        return None
    policy = Policy(
        shape="nearest" if "--nearest" in asked else "between",
        deprecated="--deprecated" in asked,
        measured_since=asked.get("--since"),
        evidence="replicated" if "--replicated" in asked else "provisional",
        regime="resident" if "--resident" in asked else "cold",
    )
    slot = {"op": asked["--op"], "gpu": gpu, "dtype": asked["--dtype"]}
    language = asked.get("--language")
    found = registry.lookup(**slot, shape=sizes, language=language, policy=policy.of_architecture(arch))
    if found.kernel is not None:
        found.kernel.read_source()  # raises BlobCorrupt if it isn't what was promoted
    elif not _is_known(slot, sizes, language):
        return None
    return lookup_document(registry, found, arch=arch, ran_on_gpu=None if gpu == PROCESSOR else True)


def _is_known(slot: dict[str, str], sizes: dict[str, int], language: str | None) -> bool:
    """Return whether the catalogue has the operation with exactly these axes, the element type and the language."""
    from forge.cli.completing import completion_table

    table = completion_table()
    sizes_are_sound = all(1 <= size <= LARGEST_SIZE for size in sizes.values())
    has_axes = sizes.keys() == set(table["axes"].get(slot["op"], ()))
    has_language = language is None or language in table["values"]["language"]
    return has_axes and has_language and sizes_are_sound and slot["dtype"] in table["values"]["dtype"]
