"""Makes installed distributions in a folder of packages: what pip leaves, without pip."""

from collections.abc import Mapping
from pathlib import Path


def install(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    entry_points: Mapping[str, str] | None = None,
) -> None:
    """Put a package's files and its metadata into `site`, a folder called site-packages."""
    site.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (metadata / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    if entry_points:
        listed = "".join(f"{key} = {value}\n" for key, value in entry_points.items())
        (metadata / "entry_points.txt").write_text(f"[forge.contenders]\n{listed}")


def described(
    *contenders: str, library: str = "acme", package: str = "acme-kernels", versions: str = ">=2,<3"
) -> str:
    """Return the text of a description file."""
    head = (
        f'[library]\nname = "{library}"\npackage = "{package}"\nversions = "{versions}"\nlicence = "MIT"\n'
        'homepage = "https://example.org"\n'
    )
    return "\n".join((head, *contenders))


def call(
    name: str,
    body: str,
    *,
    operation: str = "softmax",
    arguments: str = "x",
    devices: str = '["cpu"]',
    more: str = "",
) -> str:
    """Return one contender of a description, whose function has this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return (
        f'[[contender]]\nname = "{name}"\noperation = "{operation}"\ndevices = {devices}\n{more}\n'
        f'call = """\nimport torch\n\n\ndef contender({arguments}):\n{lines}\n"""\n'
    )
