"""Which kernel to use, and why not the others: the read side for other programs, standard library only.

Two questions are kept apart. *May it run here*: only inside the domain it was verified in. *How fast is it*:
what was measured, at the nearest measured shape, with the distance. The answer's `match` says how they met:

- `exact`: the asked shape was verified and measured
- `covered`: it was verified, and measured at another shape
- `nearest`: it wasn't verified itself, but each of its sizes lies between verified ones; if the policy allows
- `family`: one of the above on another GPU of the same architecture; if the policy allows
- `none`: nothing may run here; `rejected` says why

In this order the better match wins; within one, the smaller distance to a measured shape, then the lower
median time there, then the kernel id. Deprecated kernels answer only if allowed and if nothing else does;
revoked ones and those without valid evidence never. Nothing is imported before a registry is opened.
"""

from forge.errors import BlobCorrupt, IntegrityError, UnknownName, UsageError, WorkspaceNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    # a snapshot is JSON: its digest vouches for the content, the classes below name the fields they use
    from typing import Any, Literal

    Document = dict[str, Any]
    Match = Literal["exact", "covered", "nearest", "family", "none"]
    Fit = tuple[bool, int, float, float, str]

SCHEMA_VERSION = 1
FITS = ("exact", "covered", "nearest")


class Policy:
    """What the caller accepts. By default only what was verified at the asked shape on the asked GPU.

    `shape`: the loosest of exact, covered, nearest. `gpu`: exact, or family for another GPU of the same
    architecture; `gpu_arch` names the asked GPU's if nothing ever ran on one. `deprecated`: whether a
    deprecated kernel may answer. `max_octaves`: how far away the nearest measured shape may be. `abi_key`:
    the caller's; kernels built for another are passed over.
    """

    def __init__(
        self,
        *,
        shape: str = "covered",
        gpu: str = "exact",
        gpu_arch: str | None = None,
        deprecated: bool = False,
        max_octaves: float | None = None,
        abi_key: str | None = None,
    ) -> None:
        if shape not in FITS:
            raise UnknownName("shape policy", shape, list(FITS))
        if gpu not in {"exact", "family"}:
            raise UnknownName("gpu policy", gpu, ["exact", "family"])
        self.shape, self.gpu, self.gpu_arch = shape, gpu, gpu_arch
        self.deprecated, self.max_octaves, self.abi_key = deprecated, max_octaves, abi_key


STRICT = Policy()


class Kernel:
    """The bytes to load and where to enter them."""

    kernel_id: str
    language: str
    gpu: str
    sha256: str
    """Of kernel.py."""
    entry_point: str
    artifact_sha256: str | None
    """Of what was built from it, for a language with a build."""

    def __init__(self, entry: "Document", directory: str) -> None:
        self.__dict__.update({name: entry[name] for name in Kernel.__annotations__})
        self.source_path = f"{directory}/{entry['path']}"

    def read_source(self) -> bytes:
        """kernel.py as it was promoted; raises BlobCorrupt if the file isn't that."""
        return _read(self.source_path, sha256=self.sha256)


class Evidence:
    """What was measured at `shape`, the measured shape nearest to the asked one, and which events say so."""

    shape: dict[str, int]
    distance: float
    """From the asked shape, in octaves summed over the axes."""
    median_ns: float
    baseline: str
    baseline_median_ns: float
    speedup: float
    low: float
    high: float
    """The speedup's two-sided 95 % interval."""
    samples_sha256: str
    env_sha256: str
    perf_key: str
    abi_key: str
    verified_seq: int
    benchmark_seq: int
    promoted_seq: int

    def __init__(self, entry: "Document", point: "Document", distance: float) -> None:
        known = {**entry, **point, "distance": distance}
        self.__dict__.update({name: known[name] for name in Evidence.__annotations__})


class Result:
    """An answer: `match`, and unless it is none a `kernel` with its `evidence`, from one `generation`."""

    def __init__(self, question: "_Question", generation: "_Generation") -> None:
        best: tuple[Fit, Document, Document] | None = None
        for entry in generation.kernels_for(question):
            judged = question.judge(entry)
            if not isinstance(judged, str) and (best is None or judged[0] < best[0]):
                best = (judged[0], entry, judged[1])
        self.generation: str = generation.sha256
        self.match: Match = "none"
        self.kernel: Kernel | None = None
        self.evidence: Evidence | None = None
        self._question, self._entries = question, generation.by_op.get(question.op, [])
        if best is not None:
            (_, rank, distance, _, _), entry, point = best
            self.match = ("exact", "covered", "nearest", "family")[min(rank, len(FITS))]
            self.kernel = Kernel(entry, generation.directory)
            self.evidence = Evidence(entry, point, distance)

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """(kernel_id, reason) of every other kernel of the operation, by kernel_id."""
        chosen = self.kernel.kernel_id if self.kernel else None
        found = []
        for entry in self._entries:
            if entry["kernel_id"] != chosen:
                judged = self._question.judge(entry)
                reason = judged if isinstance(judged, str) else f"{chosen} is the better match"
                found.append((entry["kernel_id"], reason))
        return found


class _Question:
    """One slot and what its asker accepts."""

    def __init__(
        self,
        op: str,
        gpu: str,
        dtype: str,
        shape: "Mapping[str, int]",
        *,
        language: str | None,
        policy: Policy,
        gpus: "Mapping[str, str]",
    ) -> None:
        if not shape or any(type(size) is not int or size < 0 for size in shape.values()):
            raise UsageError(f"bad shape {shape!r}: expected axis names with whole sizes from 0")
        self.gpu = "".join(letter for letter in gpu.lower() if letter.isascii() and letter.isalnum())
        self.op, self.dtype, self.shape, self.language = op, dtype, dict(shape), language
        self.policy, self.gpus = policy, gpus

    def judge(self, entry: "Document") -> "tuple[Fit, Document] | str":
        """How well a kernel fits and the measured point to go by, or why it may not answer."""
        barred = self._barred(entry) or self._gpu_barred(entry["gpu"])
        if barred is not None:
            return barred
        rank = self._rank(entry)
        if isinstance(rank, str):
            return rank
        points = [(_octaves(self.shape, at["shape"]), at["median_ns"], at) for at in entry["points"]]
        distance, median_ns, point = min(points, key=lambda measured: measured[:2])
        limit = self.policy.max_octaves
        if limit is not None and not distance <= limit:
            return f"nearest measured shape {point['shape']} is {distance} octaves away, allowed {limit}"
        rank += 0 if entry["gpu"] == self.gpu else len(FITS)
        return (entry["status"] != "active", rank, distance, median_ns, entry["kernel_id"]), point

    def _barred(self, entry: "Document") -> str | None:
        """Why it may not answer, whatever the shape and the GPU."""
        status = entry["status"]
        if status != "active" and not (status == "deprecated" and self.policy.deprecated):
            return f"{status}: {entry['status_reason']}"
        if entry["dtype"] != self.dtype:
            return f"dtype {entry['dtype']}, asked {self.dtype}"
        if self.language not in {None, entry["language"]}:
            return f"language {entry['language']}, asked {self.language}"
        if self.policy.abi_key not in {None, entry["abi_key"]}:
            return f"built for abi_key {entry['abi_key']}"
        return None if entry["points"] else "never measured"

    def _gpu_barred(self, gpu: str) -> str | None:
        if gpu == self.gpu:
            return None
        if self.policy.gpu != "family":
            return f"gpu {gpu}, asked {self.gpu}"
        arch, asked = self.gpus.get(gpu), self.policy.gpu_arch or self.gpus.get(self.gpu)
        if arch is not None and arch == asked:
            return None
        return f"gpu {gpu} of architecture {arch}, asked {self.gpu} of {asked}"

    def _rank(self, entry: "Document") -> int | str:
        """The place in FITS of how the asked shape lies in the verified domain, or why it doesn't."""
        if self.shape in entry["verified"]:
            rank = 0 if any(point["shape"] == self.shape for point in entry["points"]) else 1
        else:
            alike = [shape for shape in entry["verified"] if shape.keys() == self.shape.keys()]
            if not alike:
                return f"shape has axes {sorted(self.shape)}, none verified"
            for axis, size in sorted(self.shape.items()):
                least, most = min(shape[axis] for shape in alike), max(shape[axis] for shape in alike)
                if not least <= size <= most:
                    return f"shape outside the verified domain: {axis} {size}, verified {least} to {most}"
            rank = 2
        if rank > FITS.index(self.policy.shape):
            return f"shape is only {FITS[rank]}, the policy asks for {self.policy.shape}"
        return rank


def _octaves(asked: "Mapping[str, int]", measured: "Mapping[str, int]") -> float:
    """Sum over the axes of |log2(asked / measured)|; size 0 counts as 1; other axes are infinitely far."""
    import math

    if asked.keys() != measured.keys():
        return math.inf
    ratios = (max(asked[axis], 1) / max(measured[axis], 1) for axis in sorted(asked))
    return round(sum(abs(math.log2(ratio)) for ratio in ratios), 6)


class _Generation:
    """One published snapshot, read and indexed; it never changes."""

    def __init__(self, directory: str, pointer: bytes) -> None:
        import json

        self.directory, self.pointer = directory, pointer
        try:
            current = json.loads(pointer)
            _check_schema(current)
            self.sha256: str = current["sha256"]
            if current["snapshot"] != f"lookup-{self.sha256[:12]}.json":
                raise BlobCorrupt(f"current.json names {current['snapshot']!r}, which isn't its digest's name")
            self.ledger_id: str = current["ledger"]["ledger_id"]
            self.seq: int = current["ledger"]["seq"]
            self.event_hash: str = current["ledger"]["event_hash"]
            snapshot = json.loads(_read(f"{directory}/{current['snapshot']}", sha256=self.sha256))
            _check_schema(snapshot)
            self.gpus: dict[str, str] = snapshot["gpus"]
            self.kernels: int = len(snapshot["kernels"])
            self.by_op: dict[str, list[Document]] = {}
            self.by_slot: dict[tuple[str, str, str], list[Document]] = {}
            for entry in sorted(snapshot["kernels"], key=lambda entry: str(entry["kernel_id"])):
                self.by_op.setdefault(entry["op"], []).append(entry)
                self.by_slot.setdefault((entry["op"], entry["gpu"], entry["dtype"]), []).append(entry)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BlobCorrupt(f"the lookup snapshot in {directory!r} can't be read: {error!r}") from error

    def kernels_for(self, question: _Question) -> "list[Document]":
        """Every kernel that could answer."""
        if question.policy.gpu == "family":
            return self.by_op.get(question.op, [])
        return self.by_slot.get((question.op, question.gpu, question.dtype), [])


def _check_schema(document: "Document") -> None:
    found = document["schema_version"]
    if found != SCHEMA_VERSION:
        raise IntegrityError(f"lookup snapshot of schema {found!r}, expected {SCHEMA_VERSION}: upgrade Forge")


def _read(path: str, *, sha256: str | None = None) -> bytes:
    """The file's bytes, checked against `sha256`; raises BlobCorrupt."""
    import hashlib

    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BlobCorrupt(f"{path!r} can't be read: {error}; publish the registry again") from error
    found = hashlib.sha256(content).hexdigest()
    if sha256 not in {None, found}:
        raise BlobCorrupt(f"{path!r} has digest {found}, expected {sha256}: publish the registry again")
    return content


class Health:
    """`ok` unless the newest publication can't be read and an older one answers; `error` says why."""

    def __init__(self, generation: _Generation, error: str | None) -> None:
        self.ok, self.error = error is None, error
        self.generation, self.kernels = generation.sha256, generation.kernels
        self.ledger_id, self.ledger_seq = generation.ledger_id, generation.seq
        self.event_hash = generation.event_hash


class Registry:
    """A published registry, opened for questions. Safe to ask from several threads while one refreshes."""

    def __init__(self, pointer_path: str) -> None:
        self._path = pointer_path
        self._directory = pointer_path.rpartition("/")[0]
        self._error: str | None = None
        self._current = _Generation(self._directory, _read(pointer_path))

    @classmethod
    def open(cls, path: "str | os.PathLike[str]") -> "Registry":
        """Open a workspace, its kernel_registry directory, or the current.json in it.

        Raises WorkspaceNotFound if nothing is published there, BlobCorrupt if what is isn't what it was.
        """
        import os

        where = os.path.abspath(path)
        for pointer in (where, f"{where}/current.json", f"{where}/kernel_registry/current.json"):
            if os.path.isfile(pointer):
                return cls(pointer)
        expected = "expected a workspace, a kernel_registry directory or a current.json"
        raise WorkspaceNotFound(f"no published registry at {where!r}: {expected}")

    @property
    def generation(self) -> str:
        """The digest of the snapshot that answers."""
        return self._current.sha256

    def lookup(
        self,
        *,
        op: str,
        gpu: str,
        dtype: str,
        shape: "Mapping[str, int]",
        language: str | None = None,
        policy: Policy = STRICT,
    ) -> Result:
        """The best kernel for a slot under `policy`; the same snapshot and question give the same answer."""
        current = self._current
        question = _Question(op, gpu, dtype, shape, language=language, policy=policy, gpus=current.gpus)
        return Result(question, current)

    def refresh(self) -> bool:
        """Take up a newer publication; return whether there was one.

        One that can't be read leaves the last good generation answering, and `health()` says so.
        """
        try:
            pointer = _read(self._path)
            newer = pointer != self._current.pointer
            if newer:
                self._current = _Generation(self._directory, pointer)
        except IntegrityError as error:
            self._error = error.message
            return False
        self._error = None
        return newer

    def health(self) -> Health:
        """Which generation answers, and whether it is the newest published."""
        return Health(self._current, self._error)
