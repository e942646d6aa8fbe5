"""check: one kernel against one reference, without a workspace."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.candidate_log import show_log, show_place
from forge.cli.check_formats import Format, written
from forge.cli.evidence import show_evidence
from forge.cli.option_groups import with_groups
from forge.cli.options import DeviceName, Json, Quiet, Verbose
from forge.cli.output import SIMULATED, emit_json, emit_table, say, shape_text
from forge.cli.progress import reporting
from forge.cli.suggest import suggest
from forge.cli.task import Axes, Constants, FunctionName, Operands, Vary
from forge.errors import UsageError

if TYPE_CHECKING:
    from forge.app.check.check import CheckedFiles, CheckRequest

Document = dict[str, Any]  # Any: a JSON document
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="[REFERENCE.py] KERNEL.py", help="The reference file and the kernel; with --op the kernel alone."
    ),
]


Op = Annotated[
    str | None,
    typer.Option(
        help="In place of a reference file: an operation of the catalogue; forge op list shows them.",
        show_default=False,
    ),
]
ShapeText = Annotated[
    str | None,
    typer.Option(help="With --op: sizes by axis. Default: its first listed workload.", show_default=False),
]
Dtype = Annotated[str, typer.Option(help="Element type: fp32, fp16 or bf16.")]
LanguageName = Annotated[
    str | None,
    typer.Option(
        help="Language, such as cpp or triton. Default: what the kernel's imports and constants show.",
        show_default=False,
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(help="The processor. Default: this machine's GPU, or its CPU.", show_default=False),
]
EntryPoint = Annotated[
    str | None, typer.Option(help="The kernel's function or class, if it isn't clear.", show_default=False)
]
PromisedDomain = Annotated[
    str | None,
    typer.Option(
        help="Shapes at which the kernel promises an answer, as 'hidden_size<=65536, batch%8==0'. Outside it may "
        "raise. Default: all that the reference takes.",
        show_default=False,
    ),
]
LimitS = Annotated[
    float | None,
    typer.Option(
        min=1,
        max=3600,
        help="Processor seconds that one thread of the kernel's process may take. Default: 120, as for forge verify.",
        show_default=False,
    ),
]
OutputFormat = Annotated[
    Format, typer.Option(help="Form of the result for people, GitHub, test reports or code scanners.")
]


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options that say what a kernel is checked against, and as what."""

    op: Op = None
    shape: ShapeText = None
    dtype: Dtype = "fp32"
    language: LanguageName = None
    gpu: Gpu = None
    entry_point: EntryPoint = None
    function: FunctionName = ""
    operand: Operands = None
    constant: Constants = None
    axis: Axes = None
    vary: Vary = None
    domain: PromisedDomain = None
    limit_s: LimitS = None
    device: DeviceName = None

    def request(self, command: str, files: list[Path]) -> "CheckRequest":
        """Return what is to be checked, and choose the device; raise UsageError for options that don't fit."""
        from forge.app.check.check import CheckRequest
        from forge.app.machine.chosen_device import chosen_device

        reference, kernel = self._chosen_files(command, files)
        chosen_device(self.device)
        return CheckRequest(
            kernel=kernel,
            reference=reference,
            op=self.op,
            shape=self.shape,
            function=self.function,
            operands=self.operand or [],
            constants=self.constant or [],
            axes=self.axis or [],
            ranges=self.vary or [],
            language=self.language,
            gpu=self.gpu,
            dtype=self.dtype,
            entry_point=self.entry_point,
            domain=self.domain,
            limit_s=self.limit_s,
        )

    def _chosen_files(self, command: str, files: list[Path]) -> tuple[Path | None, Path]:
        """Return the reference, if one is wanted, and the kernel; raise UsageError for options that don't fit."""
        if self.shape is not None and self.op is None:
            raise UsageError("--shape without --op: expected no --shape, since a reference file has its own sizes")
        given = {"function": self.function, "operand": self.operand, "constant": self.constant}
        given |= {"axis": self.axis, "vary": self.vary}
        of_a_file = next((name for name, value in given.items() if value), None)
        if self.op is not None and of_a_file is not None:
            raise UsageError(f"--{of_a_file} with --op: expected no --{of_a_file}, which is about a reference file")
        for path in files:
            if path.is_dir():
                options = "" if self.op is None else f" --op {shlex.quote(self.op)}"
                raise UsageError(
                    f"{str(path)!r} is a folder: expected a file such as kernel.py in it",
                    hint=f"forge {command}{options or ' --op OP'} {shlex.quote(str(path / 'kernel.py'))}",
                )
        wanted = 1 if self.op is not None else 2
        if len(files) != wanted:
            counted = "1 file" if len(files) == 1 else f"{len(files)} files"
            two = "REFERENCE.py KERNEL.py, or KERNEL.py and --op"
            expected = "KERNEL.py alone, since --op names the reference" if self.op else two
            raise UsageError(f"{counted}: expected {expected}", hint=f"forge {command} --help")
        return (None if self.op is not None else files[0]), files[-1]


@with_groups
def check(
    files: Files,
    options: CheckOptions,
    output_format: OutputFormat = "text",
    _quiet: Quiet = False,
    _verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Check a kernel by all gates against a reference file, or with --op against an operation; record nothing.

    It needs no workspace. Exit status: 0 accepted, 1 rejected, 2 bad input, 3 this machine can't run it.

    Example: forge check reference.py kernel.py --output-format github
    """
    from forge.app.check.check import check as judge
    from forge.lab.gates import GATES

    if as_json and output_format != "text":
        raise UsageError("--json and --output-format exclude each other: expected one form on stdout")
    request = options.request("check", files)
    with reporting("check", [gate.name for gate in GATES], hint=hint_of(request)) as progress:
        document = check_document(judge(request, progress=progress), request)
    _emit(document, output_format, as_json=as_json)
    if document["reason"] is not None:
        suggest("try", f"forge explain {document['reason']['code']}")
        raise typer.Exit(1)
    say("a check records nothing and promotes nothing: for that, make a task")
    suggest("next", "forge task create --help")


def hint_of(request: "CheckRequest") -> str:
    """Return what is shown beside a step that takes long: how a kernel that hangs is ended sooner."""
    return "if it hangs, use --limit-s 10" if request.limit_s is None else ""


def check_document(checked: "CheckedFiles", request: "CheckRequest") -> Document:
    """Return a check's result as a JSON document, with the fields that a verification's answer has."""
    examined = checked.examined
    verdict = examined.verdict.model_dump(mode="json")
    counterexample = examined.counterexample
    return {
        "verdict": verdict["verdict"],
        "simulated": checked.simulated,
        "reason": verdict.get("reason"),
        "stage": examined.stage,
        "kernel": str(request.kernel),
        "reference": None if request.reference is None else str(request.reference),
        "operation": checked.operation,
        "entry_point": checked.entry_point,
        "language": checked.language,
        "target": checked.target.model_dump(mode="json"),
        "dtype": checked.dtype,
        "shape": dict(checked.shape),
        "domain": checked.domain,
        "isolation": checked.isolation.model_dump(mode="json"),
        "gates": [gate.model_dump(mode="json") for gate in examined.gates],
        "counterexample": counterexample.model_dump(mode="json") if counterexample else None,
        "findings": [finding.model_dump(mode="json") for finding in examined.findings],
        "log": checked.log.document() if checked.log else None,
        "mend": checked.mend.document() if checked.mend else None,
        "recorded": False,
    }


def _emit(document: Document, output_format: Format, *, as_json: bool) -> None:
    if as_json:
        emit_json(document)
    elif output_format != "text":
        sys.stdout.write(written(output_format, document))
    else:
        _show(document)


def _show(document: Document) -> None:
    reason = document["reason"]
    verdict = f"{document['verdict']} ({SIMULATED})" if document["simulated"] else document["verdict"]
    asked = f"{document['operation']} at {shape_text(document['shape'])}, {document['dtype']}, {document['language']}"
    if document["domain"] is not None:
        asked += f", within {document['domain']}"
    why = f"{reason['code']}: {reason['message']}" if reason else ""
    emit_table("check", ("verdict", "asked", "why"), [(verdict, asked, why)])
    rows = [(gate["name"], gate["verdict"], gate["observed"], gate["threshold"]) for gate in document["gates"]]
    emit_table("", ("gate", "verdict", "observed", "threshold"), rows)
    show_evidence(document)
    if reason is not None:
        show_log(document["log"], None)
        show_place(document["mend"])
