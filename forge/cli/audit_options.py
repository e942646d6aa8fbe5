"""Options and output of forge audit: an answer as a table with notes, JSON, CSV, Parquet or a picture."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.opening import ask_at_head, open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, number_text, say, simulated_text, visible
from forge.errors import UsageError

if TYPE_CHECKING:
    from forge.app.audit.answer import Answer
    from forge.app.plain_events import HasEvents
    from forge.app.workspace import Workspace

    Ask = Callable[[Workspace], Answer]
    AskEvents = Callable[[HasEvents], Answer]
    Drawing = Callable[[Answer], None]

Csv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")]
Parquet = Annotated[
    Path | None,
    typer.Option("--parquet", metavar="FILE", help="Also write the rows to a Parquet file.", show_default=False),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Also write a picture: FILE.svg or FILE.png.", show_default=False),
]
Draw = Annotated[bool, typer.Option("--draw", help="Draw a picture in the terminal instead of a table.")]
Op = Annotated[str | None, typer.Option("--op", help="Only this operation.", show_default=False)]
Gpu = Annotated[str | None, typer.Option("--gpu", help="Only tasks for this processor.", show_default=False)]
DType = Annotated[str | None, typer.Option("--dtype", help="Only this element type.", show_default=False)]
Author = Annotated[str | None, typer.Option("--author", help="Only candidates of this author.", show_default=False)]
Language = Annotated[str | None, typer.Option("--language", help="Only this language.", show_default=False)]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        help="Speedup over eager, compile or vendor. Default: the baseline that had to be beaten.",
        show_default=False,
    ),
]
WithoutNode = Annotated[
    list[str] | None,
    typer.Option(
        "--without-node",
        metavar="NODE",
        help="Leave out what this node or machine judged and timed, by the beginning of its name; may be repeated.",
        show_default=False,
    ),
]
BASELINES = ("eager", "compile", "vendor")


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options that say which workspace is asked, and in which form the answer is printed."""

    home: Home = None
    as_json: Json = False
    as_csv: Csv = False
    parquet: Parquet = None

    def give(self, ask: "Ask", *, plot: "Drawing | None" = None, draw: "Drawing | None" = None) -> "Answer":
        """Ask the workspace, print the answer in the form that the user asked for, and return it."""
        with open_workspace(self.home) as workspace:
            answer = ask(workspace)
        self._emit(answer, plot, draw)
        return answer

    def give_quickly(
        self, ask: "AskEvents", *, plot: "Drawing | None" = None, draw: "Drawing | None" = None
    ) -> "Answer":
        """Print an answer that needs the tables, and perhaps some events as documents; return it.

        If the tables stand at the ledger's head, no model is loaded. Otherwise the whole workspace is opened, and
        brings them up to the ledger. `plot` and `draw` make the answer's drawings.
        """
        answer = self._quick_answer(ask)
        if answer is None:
            from forge.app.plain_events import OfWorkspace

            return self.give(lambda workspace: ask(OfWorkspace(workspace)), plot=plot, draw=draw)
        self._emit(answer, plot, draw)
        return answer

    def _quick_answer(self, ask: "AskEvents") -> "Answer | None":
        return ask_at_head(self.home, ask)

    def _emit(self, answer: "Answer", plot: "Drawing | None", draw: "Drawing | None") -> None:
        """Print an answer in one form; write files first. Raises UsageError for two forms at once."""
        if self.as_json + self.as_csv + (draw is not None) > 1:
            raise UsageError("--json, --csv and --draw exclude each other: expected one form on stdout")
        if self.parquet is not None:
            from forge.app.audit.files import write_parquet

            write_parquet(answer, self.parquet)
            say(f"wrote {self.parquet}")
        if plot is not None:
            plot(answer)
        if draw is not None:
            draw(answer)
        elif self.as_json:
            emit_json(answer.document())
        elif self.as_csv:
            from forge.app.audit.files import as_csv as written

            sys.stdout.write(written(answer))
        else:
            _emit_rows(answer)
        if not self.as_json:
            for note in answer.notes:
                say(note)


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions(AuditOptions):
    """Options of an audit command whose answer rests on machines' evidence, which the user may leave out."""

    without_node: WithoutNode = None

    def give(self, ask: "Ask", *, plot: "Drawing | None" = None, draw: "Drawing | None" = None) -> "Answer":
        """Print the answer that leaves out the evidence of the machines that the user named."""
        return super().give(lambda workspace: ask(self._without_nodes(workspace)), plot=plot, draw=draw)

    def _quick_answer(self, ask: "AskEvents") -> "Answer | None":
        """Return None if evidence is left out, because only the ledger says which evidence a machine gathered."""
        return None if self.without_node else super()._quick_answer(ask)

    def _without_nodes(self, workspace: "Workspace") -> "Workspace":
        if not self.without_node:
            return workspace
        from forge.app.stored.leave_out_machines import environments_of

        environments = environments_of(workspace.ledger, self.without_node)
        say(f"left out: the evidence of {', '.join(self.without_node)}")
        return replace(workspace, left_out=environments)


@dataclass(frozen=True, kw_only=True)
class DrawnAuditOptions(EvidenceOptions):
    """Options of an audit command whose answer can also be drawn."""

    plot: Plot = None
    draw: Draw = False

    def give_drawn(self, ask: "AskEvents", *, plot: "Callable[[Answer, Path], None]", draw: "Drawing") -> None:
        """Give an answer as `give_quickly` does, and draw it if the user asked for that."""
        plotted = None if self.plot is None else partial(self._plot, plot, self.plot)
        self.give_quickly(ask, plot=plotted, draw=draw if self.draw else None)

    @staticmethod
    def _plot(plot: "Callable[[Answer, Path], None]", file: Path, answer: "Answer") -> None:
        plot(answer, file)
        say(f"drew {file}")


def _emit_rows(answer: "Answer") -> None:
    shown = answer.shown or answer.columns
    places = [answer.columns.index(name) for name in shown]
    rows = [tuple(_cell(row, answer.columns, place) for place in places) for row in answer.rows]
    emit_table(answer.title, shown, rows)


def _cell(row: Sequence[object], columns: Sequence[str], place: int) -> object:
    """Return a cell for a table; a row's flag `simulated` becomes the word that stands beside each such verdict."""
    flag = columns[place] == "simulated" and row[place] in (0, 1, None)
    return _visible(simulated_text(row[place]) if flag else row[place])


def _visible(cell: object) -> object:
    """Return a cell for a table: numbers in four digits, digests shortened, control characters escaped."""
    if isinstance(cell, float):
        return number_text(cell)
    if not isinstance(cell, str):
        return cell
    plain = visible(cell).replace("\n", r"\n")
    digest = len(plain) == 64 and all(one in "0123456789abcdef" for one in plain)
    return plain[:12] if digest else plain


def require_baseline(untrusted_name: str | None) -> str | None:
    """Return the name if it is a measured baseline or None; otherwise raise UnknownName."""
    from forge.errors import UnknownName

    if untrusted_name is not None and untrusted_name not in BASELINES:
        raise UnknownName("baseline", untrusted_name, list(BASELINES))
    return untrusted_name
