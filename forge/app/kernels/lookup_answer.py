"""Looks a kernel up in the published registry, once every decision in the ledger is published."""

import re
from pathlib import Path
from typing import NamedTuple

from forge.app.kernels.lookup_document import lookup_document
from forge.app.tasks.workspace_operations import find_own_operation
from forge.app.user.home import LEDGER_FILE, REGISTRY_FOLDER, find_home
from forge.app.workspace import Workspace
from forge.domain.own_operation import BATCH, PREFIX, is_own
from forge.domain.tensors import parse_dtype, parse_shape
from forge.errors import BlobCorrupt, IntegrityError, ProofRefused, WorkspaceNotFound
from forge.languages import find_language
from forge.lookup import Policy, Registry
from forge.lookup.answer import Kernel
from forge.lookup.beside import newest_decision
from forge.operations import OPERATIONS, find_operation
from forge.platforms import PROCESSORS, find_target

Data = dict[str, object]


_OWN_NAME = re.compile(rf"{PREFIX}[a-z0-9_]+_[0-9a-f]{{8}}")
"""Form of an own operation's full name."""


def _operation_named(untrusted_op: str, home: Path | None) -> str:
    """Return the operation that a name means; an own one of the workspace may be named by its beginning."""
    if untrusted_op in OPERATIONS or _OWN_NAME.fullmatch(untrusted_op):
        return untrusted_op
    try:
        workspace = Workspace.open(find_home(home))
    except (WorkspaceNotFound, IntegrityError):
        return find_operation(untrusted_op).name
    with workspace:
        return str(find_own_operation(workspace, untrusted_op)["op"])


def _axes_of(op: str, shape: str) -> tuple[str, ...]:
    """Return an operation's axes. Only a workspace knows those of an own operation, so there the shape names them."""
    if not is_own(op):
        return find_operation(op).axes
    named = (item.partition("=")[0].strip() for item in shape.split(","))
    return tuple(dict.fromkeys((BATCH, *named)))


class UntrustedSlot(NamedTuple):
    """What a kernel is looked up for, as the caller wrote it."""

    op: str
    gpu: str
    dtype: str
    shape: str
    """Sizes by axis, such as `batch=16,hidden_size=4096`."""
    language: str | None = None


def look_up(home: Path | None, untrusted: UntrustedSlot, *, policy: Policy, key: str | None = None) -> Data:
    """Return what the published registry answers, once every decision in its ledger is published.

    If `key` is given, that key must vouch for the registry. Raises BlobCorrupt if the kernel's source isn't the one
    that was promoted.
    """
    op = _operation_named(untrusted.op, home)
    sizes = parse_shape(untrusted.shape, _axes_of(op, untrusted.shape))
    target = find_target(untrusted.gpu)
    workspace = find_home(home)
    registry = _published(workspace, key)
    language = find_language(untrusted.language).name if untrusted.language is not None else None
    slot = {"op": op, "gpu": target.gpu, "dtype": parse_dtype(untrusted.dtype)}
    arch = PROCESSORS[target.gpu].arch
    found = registry.lookup(**slot, shape=sizes, language=language, policy=policy.of_architecture(arch))
    if found.kernel is not None:
        _require_promoted(found.kernel)
    ran_on_gpu = target.gpu in registry.gpus if target.platform != "cpu" else None
    return lookup_document(registry, found, arch=arch, ran_on_gpu=ran_on_gpu)


def _published(home: Path, key: str | None) -> Registry:
    """Open the published registry; publish it first if it lacks a decision of its ledger, or raise if that fails."""
    try:
        registry = Registry.open(home / REGISTRY_FOLDER, key=key)
        at, decided = registry.health(), newest_decision(str(home))
        if decided is not None and not decided.is_published(at.ledger_id, at.ledger_seq):
            with Workspace.open(home) as workspace:
                if workspace.presence is None:
                    raise IntegrityError(
                        f"the registry in {str(home)!r} is of another ledger, or lacks event {decided.seq}, a "
                        "decision about kernels, and nothing can be published there: expected a folder that you may "
                        "write to"
                    )
                workspace.catch_up()
            registry = Registry.open(home / REGISTRY_FOLDER, key=key)
    except (IntegrityError, WorkspaceNotFound) as error:
        if not isinstance(error, ProofRefused):
            error.hint = "forge ledger rebuild" if (home / LEDGER_FILE).exists() else f"forge init {home}"
        raise
    return registry


def _require_promoted(kernel: Kernel) -> None:
    """Raise BlobCorrupt unless the file that the answer names is the one that was promoted."""
    try:
        kernel.read_source()
    except BlobCorrupt as error:
        error.hint = "forge ledger rebuild"
        raise
