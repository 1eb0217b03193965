"""Reports as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgen import __version__
from msgen.codegen.evolve.rules.table import RULES

from .paths import path_in, repository_root
from .report import STALE, Report, Result

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_OTHER_RULES = {
    STALE: "a generated module is not what the schema gives",
    "unused-import": "an import of which nothing is used",
    "unused-type": "a struct or enum that is in no message",
    "empty-group": "a group that declares nothing",
}
"""Rules of a run that are none of a diff: what they find."""


def sarif_report(report: Report) -> str:
    """Return a report as one SARIF run."""
    root = repository_root(report.schema_dir)
    results = list(report.results())
    used = sorted({each.rule for each in results})
    run = {
        "tool": {
            "driver": {
                "name": "msgen",
                "version": __version__,
                "rules": [_rule(each) for each in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": f"not compared: {each}"}}
                    for each in report.skipped
                ],
            }
        ],
        "results": [_result(each, used, root) for each in results],
    }
    data = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(data, indent=2) + "\n"


def _rule(name: str) -> dict[str, Any]:
    rule = RULES.get(name)
    if rule is None:
        purpose = _OTHER_RULES[name]
        return {"id": name, "shortDescription": {"text": f"{purpose}."}}
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.purpose}."},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\nInstead: {rule.instead}"},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(result: Result, used: list[str], root: Path) -> dict[str, Any]:
    uri = quote(path_in(root, result.place.path))
    data: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": used.index(result.rule),
        "level": result.level,
        "message": {"text": "\n".join((result.text, *result.details))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
                    "region": {
                        "startLine": result.place.line,
                        "startColumn": result.place.column,
                    },
                }
            }
        ],
        "partialFingerprints": {"msgen/v1": _identity(result)},
    }
    if result.waived is not None:
        data["suppressions"] = [{"kind": "external", "justification": result.waived}]
    return data


def _identity(result: Result) -> str:
    """Return what names a result across runs, so that a service knows it again on another line."""
    text = "\0".join((result.rule, result.place.path, result.identity))
    return hashlib.sha256(text.encode()).hexdigest()
