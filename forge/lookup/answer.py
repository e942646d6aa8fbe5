"""What a lookup answers with: the bytes to load, the evidence for them, and why each other kernel was passed over."""

from forge.lookup.generation import Generation, read_checked
from forge.lookup.question import FITS, Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from forge.lookup.question import Document, Fit

    Match = Literal["exact", "covered", "nearest", "family", "none"]


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
        return read_checked(self.source_path, sha256=self.sha256)


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

    def __init__(self, question: "Question", generation: "Generation") -> None:
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
