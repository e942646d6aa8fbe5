"""Manages run directories: open as `.tmp-<run_id>`, then sealed under a manifest and renamed to `<run_id>`.

Sealing can be resumed after a kill at any point. Before the rename, the same files give the same manifest. After it,
the manifest in the folder is checked and returned. The ledger names the manifest by its digest.
"""

import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from forge.domain.content import sha256
from forge.errors import IntegrityError, RunNotFound, StorageFailed
from forge.ledger.blobs import READ_ONLY, BlobStore
from forge.ledger.durable import PART_PREFIX, fsync_all, fsync_folder, make_folder, write_whole
from forge.ledger.failures import storage_errors
from forge.ledger.runs.manifest import (
    MANIFEST,
    Manifest,
    ManifestFile,
    NotRegular,
    parse_manifest,
    require_inside,
    walk,
)
from forge.ledger.runs.names import CAS, OPEN_PREFIX, is_run_id, require_run_id

if TYPE_CHECKING:
    from forge.domain.digest import Digest

CANDIDATE = "candidate/"
"""Folder, in a run's directory, of the submitted files; it holds nothing else."""
SEALED_FOLDER = 0o555
"""Mode of a sealed folder: not writable."""
OPEN_FILE = 0o644
"""Mode of a file in an open run."""
SEAL_AGAIN = "forge ledger recover"
"""Command that seals the runs that have ended."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed run: what `RunSealed` records."""

    run_id: str
    path: Path
    manifest: Manifest
    manifest_sha256: "Digest"


@dataclass(frozen=True, slots=True, order=True)
class RunProblem:
    """One difference between a run directory and what was sealed."""

    path: str
    kind: Literal["missing", "unknown", "mismatch", "not_regular"]


def open_runs(root: Path) -> list[str]:
    """Return the runs below `root` that were begun and neither sealed nor cleared away, oldest first."""
    if not root.is_dir():
        return []
    names = (entry.name.removeprefix(OPEN_PREFIX) for entry in root.glob(f"{OPEN_PREFIX}*"))
    return sorted(name for name in names if is_run_id(name))


class RunDirectory:
    """One run's directory below `root` (`forge_runs`)."""

    def __init__(self, root: Path, run_id: str) -> None:
        self.run_id = require_run_id(run_id)
        self.root = root
        self.open_path = root / f"{OPEN_PREFIX}{run_id}"
        self.sealed_path = root / run_id

    @property
    def path(self) -> Path:
        """Return the folder in which the files are now."""
        return self.sealed_path if os.path.lexists(self.sealed_path) else self.open_path

    @property
    def is_sealed(self) -> bool:
        """Return whether the folder was renamed to its final name."""
        return os.path.lexists(self.sealed_path)

    @classmethod
    def create(cls, root: Path, run_id: str) -> "RunDirectory":
        """Begin a run; raise IntegrityError if its id was used before."""
        run = cls(root, run_id)
        if os.path.lexists(run.open_path) or os.path.lexists(run.sealed_path):
            raise IntegrityError(f"run {run_id!r} exists in {str(root)!r}: a run id is used once; give another")
        make_folder(run.open_path)
        return run

    def write(self, name: str, content: bytes) -> "Digest":
        """Write a file into the open run, whole or not at all; raise IntegrityError if its path leaves the run.

        A power cut may lose it until `make_durable` or `seal` has returned.
        """
        require_inside(name)
        if name == MANIFEST:
            raise IntegrityError(f"bad name {name!r} for a file of a run: seal() writes it; give another name")
        self._require_open()
        folder = self.open_path
        for part in name.split("/")[:-1]:
            folder = folder / part
            if not os.path.lexists(folder):
                make_folder(folder)
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise IntegrityError(f"{str(folder)!r} isn't a folder, so {name!r} leaves the run: give another name")
        target = self.open_path / name
        if target.is_dir() and not target.is_symlink():
            raise IntegrityError(f"{name!r} is a folder of run {self.run_id!r}: expected a file's name")
        write_whole(target, content, mode=OPEN_FILE)
        return sha256(content)

    def make_durable(self, names: Iterable[str]) -> None:
        """Make files of the open run survive a power cut; raise StorageFailed if the disk refuses."""
        files = [self.open_path / name for name in names]
        with storage_errors(self.open_path):
            fsync_all(files, {folder for file in files for folder in self._folders_of(file)})

    def holds(self, name: str, digest: "Digest") -> bool:
        """Return whether the open run has this file with this content."""
        path = self.open_path / name
        with storage_errors(path):
            return path.is_file() and not path.is_symlink() and sha256(path.read_bytes()) == digest

    def clear_candidate(self, recorded: Container[str]) -> None:
        """Remove files that weren't `recorded` as submitted from the candidate's folder."""
        self._require_open()
        folder = self.open_path / CANDIDATE
        with storage_errors(self.open_path):
            if folder.is_symlink():  # a link leads to files outside the run
                folder.unlink()
            for path in folder.rglob("*"):
                is_folder = path.is_dir() and not path.is_symlink()
                if not is_folder and path.relative_to(self.open_path).as_posix() not in recorded:
                    path.unlink()

    def seal(self, recorded: "Mapping[str, Digest] | None" = None) -> Sealed:
        """Close the run; the manifest is in the directory and in the blob store when this returns.

        Raises IntegrityError for a file that isn't regular or differs from what was `recorded`, or if a sealed
        directory differs from its manifest. Raises StorageFailed if the disk refuses; it can then be called again.
        """
        if os.path.lexists(self.sealed_path):
            return self._take_up_sealed()
        self._require_open()
        with storage_errors(self.open_path):
            self._clear_parts()
            manifest = Manifest(run_id=self.run_id, files=tuple(self._files()))
            self._require_recorded(manifest, recorded or {})
            content = manifest.content()
            write_whole(self.open_path / MANIFEST, content, mode=READ_ONLY)
            BlobStore(self.root / CAS).put(content)
            self._make_all_durable()
            os.rename(self.open_path, self.sealed_path)
            fsync_folder(self.root)
            make_read_only(self.sealed_path)
        return Sealed(self.run_id, self.sealed_path, manifest, sha256(content))

    def _take_up_sealed(self) -> Sealed:
        """Finish a seal whose process was killed after the rename."""
        if os.path.lexists(self.open_path):
            raise IntegrityError(
                f"run {self.run_id!r} is both open and sealed: move one of {str(self.open_path)!r} and "
                f"{str(self.sealed_path)!r} away"
            )
        content = _manifest_bytes(self.sealed_path)
        problems = check(self.sealed_path, sha256(content))
        if problems:
            found = f"{problems[0].kind} {problems[0].path!r}"
            raise IntegrityError(f"run {self.run_id!r} was changed after it was sealed, {found}: restore a backup")
        manifest = _parse_manifest(self.sealed_path, content)
        if manifest.run_id != self.run_id:
            raise IntegrityError(f"{str(self.sealed_path)!r} holds the manifest of {manifest.run_id!r}: restore it")
        with storage_errors(self.sealed_path):
            BlobStore(self.root / CAS).put(content)
            fsync_folder(self.root)
            make_read_only(self.sealed_path)
        return Sealed(self.run_id, self.sealed_path, manifest, sha256(content))

    def _require_open(self) -> None:
        if os.path.lexists(self.sealed_path):
            raise IntegrityError(f"run {self.run_id!r} is sealed, so nothing is added to it: open another run")
        if self.open_path.is_symlink() or not self.open_path.is_dir():
            raise RunNotFound(f"no open run {self.run_id!r}: expected the folder {str(self.open_path)!r}")

    def _require_recorded(self, manifest: Manifest, recorded: "Mapping[str, Digest]") -> None:
        problems = sorted(unlike(manifest.files, recorded))
        if problems:
            raise IntegrityError(
                f"{problems[0].path!r} in run {self.run_id!r} isn't what the ledger recorded ({problems[0].kind}): "
                "another process changed it during sealing; run the command again",
                hint=f"forge run show {self.run_id}",
            )

    def _clear_parts(self) -> None:
        for part in self.open_path.rglob(f"{PART_PREFIX}*"):
            part.unlink()

    def _files(self) -> Iterator[ManifestFile]:
        found = [entry for entry in walk(self.open_path) if entry.path != MANIFEST]
        for entry in sorted(found, key=lambda entry: os.fsencode(entry.path)):
            path = self.open_path / entry.path
            if isinstance(entry, NotRegular):
                raise IntegrityError(
                    f"{str(path)!r} is no regular file, or its name isn't text: the run can't be sealed with it; "
                    "move it away, and seal again",
                    hint=SEAL_AGAIN,
                )
            try:
                require_inside(entry.path)
            except IntegrityError as error:
                raise IntegrityError(
                    f"{str(path)!r} can't be sealed: {error.message}; move it away, and seal again", hint=SEAL_AGAIN
                ) from error
            yield entry

    def _folders_of(self, file: Path) -> Iterator[Path]:
        """Yield the folders of the open run in which the names on a file's path are."""
        yield from (folder for folder in file.parents if folder.is_relative_to(self.open_path))

    def _make_all_durable(self) -> None:
        walked = [(Path(folder), names) for folder, _, names in os.walk(self.open_path)]
        fsync_all([folder / name for folder, names in walked for name in names], [folder for folder, _ in walked])


def unlike(files: Iterable[ManifestFile], recorded: "Mapping[str, Digest]") -> Iterator[RunProblem]:
    """Yield how files differ from the digests in events; the candidate's folder may hold no other files."""
    found = {file.path: file.sha256 for file in files}
    for path, digest in recorded.items():
        if found.get(path) != digest:
            yield RunProblem(path, "mismatch" if path in found else "missing")
    if any(path.startswith(CANDIDATE) for path in recorded):
        for path in found:
            if path.startswith(CANDIDATE) and path not in recorded:
                yield RunProblem(path, "unknown")


def check(
    run_dir: Path, manifest_sha256: "Digest", *, recorded: "Mapping[str, Digest] | None" = None
) -> list[RunProblem]:
    """Return how a sealed directory differs from its manifest, and from the files that events `recorded`.

    `manifest_sha256` is the digest that the ledger names. The list is empty if nothing differs.
    """
    if not run_dir.is_dir() or run_dir.is_symlink():
        return [RunProblem(".", "missing")]
    with storage_errors(run_dir):
        found = {entry.path: entry for entry in walk(run_dir)}
    stored = found.pop(MANIFEST, None)
    if stored is None:
        return [RunProblem(MANIFEST, "missing")]
    if isinstance(stored, NotRegular):
        return [RunProblem(MANIFEST, "not_regular")]
    content = _manifest_bytes(run_dir)
    if sha256(content) != manifest_sha256:
        return [RunProblem(MANIFEST, "mismatch")]
    listed = {entry.path: entry for entry in _parse_manifest(run_dir, content).files}
    problems = {RunProblem(path, "missing") for path in listed.keys() - found.keys()}
    problems |= set(unlike(listed.values(), recorded or {}))
    for path, entry in found.items():
        if isinstance(entry, NotRegular):
            problems.add(RunProblem(path, "not_regular"))
        elif path not in listed:
            problems.add(RunProblem(path, "unknown"))
        elif (listed[path].size_bytes, listed[path].sha256) != (entry.size_bytes, entry.sha256):
            problems.add(RunProblem(path, "mismatch"))
    return sorted(problems)


def _manifest_bytes(run_dir: Path) -> bytes:
    try:
        return (run_dir / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise IntegrityError(f"{str(run_dir)!r} has no {MANIFEST}, as a sealed run has: restore a backup") from None
    except OSError as error:
        raise StorageFailed(
            f"{run_dir / MANIFEST}: can't be read ({error}): expected a file that this user may read"
        ) from error


def _parse_manifest(run_dir: Path, content: bytes) -> Manifest:
    try:
        return parse_manifest(content)
    except ValueError as error:
        raise IntegrityError(f"{MANIFEST} of {str(run_dir)!r} can't be read ({error}): restore a backup") from error


def make_read_only(root: Path) -> None:
    """Remove write permission from a folder and everything below it."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            os.chmod(Path(folder, name), READ_ONLY, follow_symlinks=False)
        os.chmod(folder, SEALED_FOLDER)
