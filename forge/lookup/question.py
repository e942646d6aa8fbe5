"""One slot, what its asker accepts, and how well a kernel fits it: the rules of a lookup, without any file."""

from forge.errors import UnknownName, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    # a snapshot is JSON: its digest vouches for the content, the classes that read it name the fields they use
    from typing import Any

    Document = dict[str, Any]
    Fit = tuple[bool, int, float, float, str]

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


class Question:
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
