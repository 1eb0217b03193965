"""A report as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from msgen import __version__
from msgen.codegen.evolve import ChangeRule
from msgen.codegen.schema.rule import Rule

from .report import Report, Result

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_report(report: Report) -> str:
    """Return a report as one SARIF run."""
    results = list(report.results())
    rules = {each.rule.id: each.rule for each in results}
    used = sorted(rules)
    run = {
        "tool": {
            "driver": {
                "name": "msgen",
                "version": __version__,
                "rules": [_rule(rules[each]) for each in used],
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
        "results": [_result(report, each, used) for each in results],
    }
    data = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(data, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    data = {"id": rule.id, "shortDescription": {"text": f"{rule.purpose}."}}
    if isinstance(rule, ChangeRule):
        data |= {
            "fullDescription": {"text": rule.why},
            "help": {"text": f"{rule.why}\n\nInstead: {rule.instead}"},
            "defaultConfiguration": {"level": rule.severity},
        }
    return data


def _result(report: Report, result: Result, used: list[str]) -> dict[str, Any]:
    uri = quote(report.in_repository(result.place))
    data: dict[str, Any] = {
        "ruleId": result.rule.id,
        "ruleIndex": used.index(result.rule.id),
        "level": result.level,
        "message": {"text": result.message},
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
    text = "\0".join((result.rule.id, result.place.path, result.identity))
    return hashlib.sha256(text.encode()).hexdigest()
