"""Calls a launch plan on one GPU: no code of the kernel's author runs in the process, and no compiler."""

import importlib.util
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock, local
from types import ModuleType
from typing import TYPE_CHECKING

from forge.errors import EnvironmentUnfit, LoadRefused

if TYPE_CHECKING:
    import torch

    from forge.adopt.plan import LoadablePlan


LAUNCHER_FILE = Path(__file__).parents[1] / "guest" / "plan_launcher.py"
"""Path of the launcher that timed the plans. It is guest code, which no package imports, so it is loaded by path."""


def prepare_launcher() -> None:
    """Load the launcher, if what it needs is here, so that no first call waits for that."""
    with suppress(ImportError):
        _launcher()


@cache
def _launcher() -> ModuleType:
    """Load the launcher's file once per process; raise ImportError without torch or cuda-bindings."""
    spec = importlib.util.spec_from_file_location("forge_plan_launcher", LAUNCHER_FILE)
    if spec is None or spec.loader is None:
        raise ImportError(f"this Python has no loader for {str(LAUNCHER_FILE)!r}: expected CPython's importlib")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class DevicePlan:
    """A plan that was loaded on one GPU. Threads take turns, since a launch's arguments are written in one place."""

    def __init__(self, plan: "LoadablePlan", kernel_id: str, index: int) -> None:
        """Load the device code; raise EnvironmentUnfit without cuda-bindings, LoadRefused if the driver refuses."""
        import torch

        try:
            launcher = _launcher()
        except ImportError as error:
            raise EnvironmentUnfit(
                f"the launch plan of {kernel_id!r} needs the package cuda-bindings: {error}; install it, or leave "
                'the plans out by backends=("source",)'
            ) from error
        try:
            with torch.cuda.device(index):
                self._plan = launcher.PlanFunction(plan.launcher, plan.cubins)
        except launcher.LaunchError as error:
            raise LoadRefused(
                f"the driver doesn't take the launch plan of {kernel_id!r} ({error}): expected a driver as new as "
                'that of its promotion; or leave the plans out by backends=("source",)'
            ) from error
        self._count = len(plan.launcher["inputs"])
        self._several = len(plan.launcher["outputs"])
        self._index = index
        self._lock = Lock()
        self._bound = local()

    def __call__(self, *arguments: object) -> object:
        """Launch once on the current stream, with outputs and workspaces of torch's allocator."""
        if not hasattr(self._bound, "context"):
            self._bind_context()
        plan = self._plan
        inputs: tuple[torch.Tensor, ...] = arguments[: self._count]
        outputs, workspaces = plan.outputs(), plan.workspaces()
        with self._lock:
            plan.launch(inputs, outputs, workspaces)
        return outputs[0] if self._several == 1 else tuple(outputs) if outputs else None

    def _bind_context(self) -> None:
        """Make torch's context current in a thread that hasn't used the GPU yet: the driver asks for one."""
        from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is

        checked = _launcher().checked
        device = checked(driver.cuDeviceGet(self._index))
        checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
        self._bound.context = True
