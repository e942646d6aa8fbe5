"""Lets the autotuned kernels of a promoted module use the configuration that was judged and timed.

A tuner would choose by its own clock, and so run another kernel than the one that was measured. Where its own pruning
leaves the recorded configuration out, at another shape for example, it tunes as its author wrote it.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

CONFIGURATION_FILE = "configuration.json"
"""Name of the file that holds the configurations beside kernel.py."""
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of a Triton launch that a configuration may set."""
_PLAIN = (int, float, str, type(None))
"""Types of a configuration's values."""


def keep_to(recorded: Sequence[Mapping[str, object]], module: ModuleType) -> None:
    """Let each autotuned kernel of the module offer its recorded configuration alone, where it offers it."""
    for value in list(vars(module).values()):
        for held in (value, getattr(value, "fn", None)):  # such as heuristics around a tuner
            if all(hasattr(held, name) for name in ("configs", "prune_configs", "base_fn")):
                _keep(held, recorded)


# Any: Triton, which this package never imports, has no types
def _keep(tuner: Any, recorded: Sequence[Mapping[str, object]]) -> None:
    own = [one for one in tuner.configs if _described(tuner, one) in recorded]
    if not own:
        return
    prune, bench = tuner.prune_configs, tuner._bench

    def pruned(named: dict[str, object]) -> list[Any]:
        left: list[Any] = prune(named)
        return own[:1] if any(one is own[0] for one in left) else left

    def benched(*arguments: object, config: Any, **named: object) -> object:
        return [0.0, 0.0, 0.0] if config is own[0] else bench(*arguments, config=config, **named)

    tuner.prune_configs, tuner._bench = pruned, benched


def _described(tuner: Any, configuration: Any) -> dict[str, object]:
    """Return a configuration as the file has it."""
    values = {str(name): one if isinstance(one, _PLAIN) else str(one) for name, one in configuration.kwargs.items()}
    name = str(getattr(tuner.base_fn, "__name__", "a kernel"))
    return {"kernel": name, "values": values, **{option: getattr(configuration, option, None) for option in _OPTIONS}}
