"""Writes the result of a check for programs that show it: GitHub's annotations, JUnit XML, SARIF."""

import json
from typing import Any, Literal

from forge import __version__
from forge.cli.output import visible

Document = dict[str, Any]  # Any: a JSON document, taken apart
Format = Literal["text", "github", "junit", "sarif"]
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ESCAPES = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY_ESCAPES = (*_ESCAPES, (":", "%3A"), (",", "%2C"))


def written(form: Literal["github", "junit", "sarif"], document: Document) -> str:
    """Return the result in one of the formats, with every text escaped for it."""
    return {"github": _github, "junit": _junit, "sarif": _sarif}[form](document)


def place_of(document: Document) -> tuple[str, int]:
    """Return file and line of what failed: the log's, else the line to begin with, else the first."""
    log, mend = document.get("log") or {}, document.get("mend") or {}
    line = log.get("line") if log.get("file") in (None, "kernel.py") else None
    line = line or mend.get("line")
    return str(document["kernel"]), int(line or 1)


def message_of(document: Document) -> str:
    """Return one text: the reason, and the first error that the compiler or the interpreter named."""
    reason = document["reason"]
    if reason is None:
        simulated = ", SIMULATED" if document["simulated"] else ""
        return f"accepted: {_count(document, 'passed')} gates passed{simulated}"
    error = (document.get("log") or {}).get("untrusted_error")
    return f"{reason['message']}{f' | candidate: {error}' if error else ''}"


def _count(document: Document, verdict: str) -> int:
    return sum(gate["verdict"] == verdict for gate in document["gates"])


def _github(document: Document) -> str:
    """Return one workflow command (docs.github.com, "Workflow commands for GitHub Actions")."""
    file, line = place_of(document)
    kind, title = ("error", document["reason"]["code"]) if document["reason"] else ("notice", "accepted")
    named = f"file={_escaped(file, _PROPERTY_ESCAPES)},line={line},title={_escaped(title, _PROPERTY_ESCAPES)}"
    return f"::{kind} {named}::{_escaped(message_of(document), _ESCAPES)}\n"


def _escaped(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    plain = visible(text)
    for mark, code in escapes:
        plain = plain.replace(mark, code)
    return plain


def _junit(document: Document) -> str:
    """Return a test suite with one case for each gate."""
    from xml.sax.saxutils import escape, quoteattr

    suite = f"forge check {document['kernel']}"
    cases = []
    for gate in document["gates"]:
        named = f"<testcase classname={quoteattr(visible(suite))} name={quoteattr(gate['name'])}"
        said = f"{gate['observed']}; allowed: {gate['threshold']}"
        if gate["verdict"] == "failed":
            kind, message = document["reason"]["code"], visible(message_of(document))
            cases.append(
                f"{named}><failure type={quoteattr(kind)} message={quoteattr(message)}>{escape(visible(said))}"
                f"{escape(_log_text(document))}</failure></testcase>"
            )
        elif gate["verdict"] == "not asked":
            cases.append(f"{named}><skipped message={quoteattr(visible(said))}/></testcase>")
        else:
            cases.append(f"{named}/>")
    counts = f'tests="{len(cases)}" failures="{_count(document, "failed")}" skipped="{_count(document, "not asked")}"'
    inner = "\n    ".join(cases)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites>\n  <testsuite name={quoteattr(visible(suite))} {counts}>\n    {inner}\n"
        "  </testsuite>\n</testsuites>\n"
    )


def _log_text(document: Document) -> str:
    lines = (document.get("log") or {}).get("untrusted_lines") or []
    return "".join(f"\ncandidate| {visible(line)}" for line in lines)


def _sarif(document: Document) -> str:
    """Return SARIF 2.1.0 (docs.oasis-open.org/sarif): the refusal as an error, places worth a look as notes."""
    reason = document["reason"]
    results = []
    if reason is not None:
        results.append(_result(reason["code"], "error", message_of(document), *place_of(document)))
    results += [
        _result(one["kind"], "note", f"{one['untrusted_excerpt']}: {one['why']}", document["kernel"], one["line"])
        for one in document["findings"]
    ]
    rules = [{"id": name} for name in dict.fromkeys(one["ruleId"] for one in results)]
    driver = {"name": "forge", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(rule: str, level: str, text: str, file: str, line: int) -> Document:
    region = {"artifactLocation": {"uri": file}, "region": {"startLine": line}}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": visible(text)},
        "locations": [{"physicalLocation": region}],
    }
