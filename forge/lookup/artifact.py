"""The files that were made from a kernel: built objects, a launch plan, device code. Each is read by its digest."""

from forge.errors import BlobCorrupt
from forge.lookup.answer import KERNEL_FILE, Kernel
from forge.lookup.generation import DAMAGE
from forge.lookup.published import is_digest, is_plain, read_published

LISTING_FILE = "artifact.json"
"""Name of the list of these files with their digests; its own digest is `Kernel.artifact_sha256`."""


def listed_files(kernel: Kernel) -> dict[str, str]:
    """Return the digests of the files by name; empty if nothing was made; raise BlobCorrupt for a damaged list."""
    import json

    if kernel.artifact_sha256 is None:
        return {}
    listing = f"{kernel.folder}/{LISTING_FILE}"
    untrusted = read_published(kernel.registry_root, listing, sha256=kernel.artifact_sha256)
    try:
        files = {file["path"]: file["sha256"] for file in json.loads(untrusted)["files"]}
    except DAMAGE as error:
        raise BlobCorrupt(
            f"the list of files of {kernel.kernel_id!r} can't be read ({error!r}): publish the registry again",
            hint="forge ledger rebuild",
        ) from error
    for name, digest in files.items():
        if not is_plain(name) or not is_digest(digest) or name == KERNEL_FILE:
            raise BlobCorrupt(
                f"{kernel.kernel_id!r} lists the file {name!r} with digest {digest!r}: expected a plain name and a "
                "SHA-256; publish the registry again",
                hint="forge ledger rebuild",
            )
    return files


def read_file(kernel: Kernel, name: str, sha256: str) -> bytes:
    """Return the bytes of one of the files; raise BlobCorrupt unless they have this digest."""
    return read_published(kernel.registry_root, f"{kernel.folder}/{name}", sha256=sha256)
