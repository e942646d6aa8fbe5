"""`forge audit` over the shipped ledger: every question in every form, and nothing but questions."""

import builtins
import csv
import io
import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from forge.app.audit import free_sql
from forge.cli.audit_options import _visible
from forge.cli.output import visible
from tests.cli.asking import ask, built_once, copied

ROOT = Path(__file__).parents[2]
KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
QUESTIONS = (
    ("why", KERNEL),
    ("history", KERNEL),
    ("history", "--op", "softmax", "--gpu", "h200", "--baseline", "eager"),
    ("regressions", "--all"),
    ("rejections", "--by", "author"),
    ("claims",),
    ("experiments", "--ended", "regressed"),
    ("invalidated",),
    ("stale", "--current", "any", "--days", "0"),
    ("effectiveness", "--by", "skill"),
    ("leaderboard", "--baseline", "eager"),
    ("fast-p", "1", "2"),
    ("roofline", "--gpu", "h200"),
    ("sql", "SELECT op, count(*) AS kernels FROM kernels GROUP BY op"),
    ("views",),
)
REFUSED_SQL = (
    "DELETE FROM kernels",
    "INSERT INTO tasks SELECT * FROM tasks",
    "UPDATE kernels SET low = 9",
    "DROP TABLE kernels",
    "CREATE TABLE mine (x)",
    "CREATE TEMP TABLE mine (x)",
    "CREATE TEMP VIEW mine AS SELECT 1",
    "ATTACH DATABASE 'other.db' AS other",
    "ATTACH DATABASE ':memory:' AS other",
    "DETACH DATABASE main",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA table_info(kernels)",
    "SELECT * FROM pragma_table_info('kernels')",
    "SELECT * FROM pragma_database_list",
    "SELECT sql FROM sqlite_master",
    "SELECT name FROM sqlite_schema",
    "WITH kernels AS (SELECT name, sql FROM sqlite_master) SELECT * FROM kernels",
    "WITH kernels AS (SELECT sql FROM main.SQLITE_SCHEMA) SELECT * FROM kernels",
    "SELECT * FROM cursor",
    "SELECT entry FROM kernel_documents",
    "SELECT run_id FROM (SELECT * FROM trials)",
    "SELECT load_extension('evil')",
    "SELECT readfile('/etc/passwd')",
    "VACUUM INTO 'copy.db'",
    "VACUUM",
    "REINDEX",
    "ANALYZE",
    "BEGIN IMMEDIATE",
    "SELECT 1; DELETE FROM kernels",
    "EXPLAIN SELECT * FROM cursor",
    "/* SELECT */ DELETE FROM kernels",
    "WITH x AS (SELECT 1) DELETE FROM kernels",
    "SELECT zeroblob(2000000000)",
    "SELECT group_concat(a.message || b.message) FROM rejections a, rejections b, rejections c, rejections d",
    "SELECT nothing FROM kernels",
    "SELECT",
    "",
    "/* nothing */",
    "kernels",
    "SELECT cast(x'ff' AS TEXT)",
    "SELECT 1\0",
)


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shipped workspace, published; to be asked, never changed."""

    def build(folder: Path) -> None:
        folder.mkdir()
        (folder / "kernel_registry.db").write_bytes((ROOT / "kernel_registry.db").read_bytes())
        copied(ROOT / "forge_runs", folder / "forge_runs")
        assert ask("audit", "views", "--home", folder).status == 0

    return built_once(tmp_path_factory, "shipped_to_audit", build)


def digests(home: Path) -> dict[str, str]:
    """Everything that a question must leave as it is."""
    with closing(sqlite3.connect(f"file:{home / 'kernel_registry.db'}?mode=ro", uri=True)) as connection:
        events = str(connection.execute("SELECT count(*), max(hex(event_hash)) FROM event").fetchone())
    kept = [home / "kernel_registry" / "history.db", home / "kernel_registry" / "verified_kernels.json"]
    return {"events": events} | {path.name: sha256(path.read_bytes()).hexdigest() for path in kept}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_each_question_is_answered_in_every_form_and_changes_nothing(question, shipped, tmp_path):
    before = digests(shipped)
    table = ask("audit", *question, "--home", shipped)
    document = ask("audit", *question, "--home", shipped, "--json").document
    written = tmp_path / "rows.parquet"
    as_csv = ask("audit", *question, "--home", shipped, "--csv", "--parquet", written)
    header, *lines = csv.reader(io.StringIO(as_csv.out, newline=""))
    assert (table.status, as_csv.status) == (0, 0)
    assert len(lines) == len(document["rows"])
    assert lines
    assert all(list(row) == header for row in document["rows"])
    assert written.stat().st_size > 0
    assert digests(shipped) == before


@pytest.mark.slow
def test_why_goes_from_each_gate_down_to_raw_samples_that_are_hashed_again(shipped, tmp_path):
    home = copied(shipped, tmp_path / "home")
    asked = ("audit", "why", KERNEL, "--home", home, "--json")
    document = ask(*asked).document
    kinds = {row["kind"] for row in document["rows"]}
    assert kinds >= {
        "gate of verification",
        "rule of promotion",
        "speedup",
        "baseline",
        "samples",
        "policy",
        "source",
    }
    gates = [row for row in document["rows"] if row["kind"] == "gate of verification"]
    assert [row["name"] for row in gates] == [gate["name"] for gate in document["verification"]["gates"]]
    assert all(row["observed"] and row["threshold"] and row["event"] for row in gates)
    assert document["checkpoint"]["size"] >= document["promotion"]["seq"]
    (samples,) = [row for row in document["rows"] if row["kind"] == "samples"]
    assert samples["verdict"] == "as recorded"
    path = home / samples["path"]
    assert sha256(path.read_bytes()).hexdigest() == samples["sha256"]
    path.chmod(0o644)
    path.write_bytes(b"[]")
    assert "altered" in ask(*asked).out
    path.unlink()
    (samples,) = [row for row in ask(*asked).document["rows"] if row["kind"] == "samples"]
    assert samples["verdict"] == "missing"


@pytest.mark.parametrize("sql", REFUSED_SQL)
def test_the_database_refuses_what_is_no_question(sql, shipped):
    before = digests(shipped)
    answer = ask("audit", "sql", sql, "--home", shipped, "--json", "--limit", 5)
    assert (answer.status, answer.last) == (2, "try: forge audit views")
    assert digests(shipped) == before
    assert not Path("copy.db").exists()
    assert not Path("other.db").exists()


def test_a_question_without_end_is_stopped_and_says_so(shipped):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    answer = ask("audit", "sql", endless, "--seconds", 0.2, "--home", shipped)
    assert (answer.status, "took more than 0.2 s" in answer.error) == (2, True)


def test_one_step_that_takes_too_long_is_stopped_as_well(shipped, monkeypatch):
    monkeypatch.setattr(free_sql, "GRACE_S", 0.4)
    slow = "SELECT instr(printf('%.*c', 900000, 'a'), printf('%.*c', 400000, 'a') || 'b')"
    answer = ask("audit", "sql", slow, "--seconds", 0.1, "--home", shipped)
    assert (answer.status, "took more than 0.1 s" in answer.error) == (2, True)


def test_an_answer_has_a_size_that_it_may_not_exceed(shipped):
    answer = ask("audit", "sql", "SELECT zeroblob(900000) FROM benchmarks a, benchmarks b", "--home", shipped)
    assert (answer.status, "answers more than 128 MiB" in answer.error) == (2, True)


def test_rows_beyond_the_limit_are_said_to_be_left_out(shipped):
    asked = ("audit", "sql", "SELECT seq FROM benchmarks", "--home", shipped, "--json")
    cut, whole = ask(*asked, "--limit", 3).document, ask(*asked).document
    assert (len(cut["rows"]), cut["complete"]) == (3, False)
    assert "only the first 3 rows" in cut["notes"][0]
    assert (whole["complete"], whole["notes"]) == (True, [])


def test_twin_columns_both_stand_in_a_row(shipped):
    asked = ("audit", "sql", "SELECT 1 AS a, 2 AS a, x'00ff' AS b", "--home", shipped, "--json")
    assert ask(*asked).document["rows"] == [{"a": 1, "a_2": 2, "b": "00ff"}]
    asked = ("audit", "sql", "SELECT 1 AS a, 2 AS a_3, 3 AS a, 4 AS a", "--home", shipped, "--json")
    assert list(ask(*asked).document["rows"][0].values()) == [1, 2, 3, 4]


def test_what_a_column_or_a_title_is_called_is_no_markup(shipped, empty):
    answer = ask("audit", "sql", "SELECT 1 AS '[/x]', 2 AS 'a\x1b[31m'", "--home", shipped)
    assert (answer.status, "[/x]" in answer.out, "\\x1b[31m" in answer.out, "\x1b" in answer.out) == (
        0,
        True,
        True,
        False,
    )
    assert "[/x]" in ask("audit", "history", "--op", "[/x]", "--gpu", "[red]", "--home", empty, "--draw").out


@pytest.mark.slow
def test_a_file_is_never_written_over_a_ledger_or_through_a_link(shipped, tmp_path):
    home = copied(shipped, tmp_path / "home")
    ledger = home / "kernel_registry.db"
    before = ledger.read_bytes()
    (tmp_path / "rows.parquet").symlink_to(ledger)
    (tmp_path / "picture.svg").symlink_to(ledger)
    (tmp_path / "folder.svg").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    for option, path in (
        ("--parquet", ledger),
        ("--parquet", tmp_path / "rows.parquet"),
        ("--plot", ledger),
        *(("--plot", tmp_path / name) for name in ("picture.svg", "folder.svg", "pipe.png")),
    ):
        answer = ask("audit", "leaderboard", option, path, "--home", home)
        assert (answer.status, "can't write" in answer.error) == (2, True)
    assert ledger.read_bytes() == before


def test_a_file_that_is_there_is_replaced_whole(shipped, tmp_path):
    written = tmp_path / "rows.parquet"
    written.write_text("before")
    assert ask("audit", "claims", "--parquet", written, "--home", shipped).status == 0
    assert written.read_bytes()[:4] == b"PAR1"
    assert list(tmp_path.iterdir()) == [written]


def test_a_formula_in_a_cell_is_no_formula_in_a_csv(shipped):
    answer = ask("audit", "sql", "SELECT '=1+1' AS a, -5 AS b, ' @x' AS c", "--home", shipped, "--csv")
    assert answer.out == "a,b,c\r\n'=1+1,-5,' @x\r\n"


def test_no_text_commands_the_terminal():
    assert _visible("\x1b[2Jgone\u202e\n") == "\\x1b[2Jgone\\u202e\\n"
    assert visible("\x1b[2Jgone\u202e\n") == "\\x1b[2Jgone\\u202e\n"


@pytest.mark.parametrize(
    ("question", "suffix"),
    [
        (("history", "--op", "rmsnorm", "--gpu", "h200"), ".svg"),
        (("leaderboard",), ".png"),
        (("roofline", "--gpu", "h200"), ".svg"),
    ],
)
def test_a_picture_is_written_and_another_is_drawn_in_the_terminal(question, suffix, shipped, tmp_path):
    path = tmp_path / f"picture{suffix}"
    answer = ask("audit", *question, "--plot", path, "--draw", "--home", shipped)
    assert answer.status == 0
    assert path.stat().st_size > 1000
    assert "\x1b" not in answer.out
    assert len(answer.out.splitlines()) > 10


@pytest.mark.parametrize(
    "arguments",
    [
        ("why", "nothing_v1"),
        ("history",),
        ("history", KERNEL, "--plot", "picture.pdf"),
        ("history", KERNEL, "--baseline", "best"),
        ("history", "--op", "rmsnorm"),
        ("leaderboard", "--gpu", "h2oo"),
        ("roofline", "--gpu", "rtx4070"),
        ("rejections", "--since", "31.1.2026"),
        ("experiments", "--ended", "won"),
        ("fast-p", "--", "-1"),
        ("stale", "--days", "-1"),
        ("claims", "--json", "--csv"),
        ("history", KERNEL, "--json", "--draw"),
        ("claims", "--parquet", "/nowhere/rows.parquet"),
        ("claims", "--parquet", "rows.db"),
        ("history", KERNEL, "--limit", str(10**30)),
        ("rejections", "--limit", str(10**30)),
        ("experiments", "--limit", str(10**30)),
        ("experiments", "\udcff"),
        ("sql", "SELECT '\udcff'"),
        ("sql", "SELECT 1", "--seconds", "nan"),
    ],
    ids=" ".join,
)
def test_a_question_that_makes_no_sense_is_bad_input(arguments, shipped):
    assert ask("audit", *arguments, "--home", shipped).status == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("experiments", "--axis", "tile"), "unknown axis 'tile': expected one of algorithm, "),
        (("experiments", "--layer", "L5"), "unknown layer 'L5': expected one of L1, L2, L3, L4"),
        (("rejections", "--gate", "numeric"), "unknown gate that refused 'numeric': expected one of "),
        (("rejections", "--task", "nope"), "more, which forge task list lists"),
        (("history", "--candidate", "0", "--gpu", "h2oo"), "unknown GPU 'h2oo'"),
        (("history", KERNEL, "--dtype", "fp99"), "unknown element type 'fp99'"),
    ],
    ids=" ".join,
)
def test_a_name_that_the_history_never_had_is_no_empty_answer(arguments, said, shipped):
    answer = ask("audit", *arguments, "--home", shipped)
    assert answer.status == 2
    assert said in answer.error


def test_filters_that_the_history_has_leave_what_they_name(shipped):
    gates = ask("audit", "rejections", "--by", "gate", "--home", shipped, "--json").document["rows"]
    tasks = ask("audit", "rejections", "--by", "task", "--home", shipped, "--json").document["rows"]
    for option, rows in (("--gate", [row for row in gates if row["gate"]]), ("--task", tasks)):
        name = next(iter(rows[0].values()))
        found = ask("audit", "rejections", option, name, "--home", shipped, "--json").document
        assert found["refused"] == rows[0]["refused"] > 0


@pytest.mark.parametrize("gpu", ["H200", "NVIDIA H200"])
def test_a_gpu_goes_by_any_of_its_names(gpu, shipped):
    for question in (("leaderboard",), ("fast-p", "1"), ("roofline",), ("history", "--op", "softmax")):
        answers = [ask("audit", *question, "--gpu", name, "--home", shipped, "--json") for name in (gpu, "h200")]
        assert answers[0] == answers[1]
        assert answers[0].document["rows"]
    assert ask("audit", "history", "--op", "softmax", "--gpu", gpu, "--home", shipped).out.startswith(
        "softmax on h200"
    )


def test_without_the_extra_a_file_is_refused_by_its_name(shipped, tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **options):
        if name.split(".")[0] in ("pyarrow", "matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    for option, name in (("--parquet", "rows.parquet"), ("--plot", "picture.svg")):
        answer = ask("audit", "history", KERNEL, option, tmp_path / name, "--home", shipped)
        assert (answer.status, answer.last) == (3, "try: pip install 'tensorpath-forge[audit]'")
        assert "tensorpath-forge[audit]" in answer.error
    assert list(tmp_path.iterdir()) == []


def test_an_empty_workspace_has_empty_answers(empty):
    for question in QUESTIONS:
        if question[0] not in ("why", "history", "roofline", "views"):
            answer = ask("audit", *question, "--home", empty, "--json")
            assert (answer.status, [row for row in answer.document["rows"] if question[0] != "fast-p"]) == (0, [])
    shares = [row["fast_p"] for row in ask("audit", "fast-p", "--home", empty, "--json").document["rows"]]
    assert shares == [None] * 4


@pytest.mark.parametrize(
    "asked",
    [
        ("rejections", "--gpu", "h200"),
        ("leaderboard", "--op", "softmax"),
        ("effectiveness", "--language", "triton"),
        ("history", "--op", "softmax", "--gpu", "h200"),
    ],
)
def test_a_known_value_that_nothing_was_recorded_of_is_answered_with_no_rows(
    open_workspace: Path, asked: tuple[str, ...]
) -> None:
    answer = ask("audit", *asked, "--home", open_workspace, "--json")
    assert (answer.status, answer.document["rows"]) == (0, [])
    value = asked[2]
    refused = ask("audit", *asked[:2], f"{value}x", *asked[3:], "--home", open_workspace)
    assert (refused.status, f"'{value}x': expected one of" in refused.error) == (2, True)
