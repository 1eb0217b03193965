"""A report as JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from msgen.codegen.evolve import Diff, Finding
from msgen.codegen.schema.rule import ERROR, NOTE, WARNING

from .report import WAIVED, Report

VERSION = 1
"""Raised when a key changes its meaning."""


def json_report(report: Report) -> str:
    counts = report.counts()
    data = {
        "version": VERSION,
        "comparisons": [_diff(report, each) for each in report.diffs],
        "waivers": [_finding(report, each) for each in report.about_waivers],
        "skipped": report.skipped,
        "lint": [
            {
                "rule": each.rule.id,
                "severity": each.severity,
                "place": each.place._asdict(),
                "text": each.message,
            }
            for each in report.lint
        ],
        "stale": [{"kind": kind, "path": path} for kind, path in report.stale],
        "summary": {
            **{f"{level}s": counts[level] for level in (ERROR, WARNING, NOTE)},
            WAIVED: counts[WAIVED],
        },
    }
    return json.dumps(data, indent=2) + "\n"


def _diff(report: Report, diff: Diff) -> dict[str, Any]:
    return {
        "against": diff.against,
        "label": diff.label,
        "rollout": diff.rollout,
        "groups": [asdict(each) for each in diff.verdicts],
        "findings": [_finding(report, each) for each in diff.findings],
    }


def _finding(report: Report, finding: Finding) -> dict[str, Any]:
    change = finding.change
    return {
        "rule": change.rule.id,
        "severity": finding.severity,
        "subject": change.subject,
        "place": report.located(change.place)._asdict(),
        "old_place": change.old_place and change.old_place._asdict(),
        "text": change.text,
        "old": change.old,
        "new": change.new,
        "breaks": finding.breaks,
        "new_reads_old": finding.new_reads_old,
        "old_reads_new": finding.old_reads_new,
        "groups": finding.groups,
        "messages": finding.messages or finding.old_messages,
        "readers": finding.readers,
        "senders": finding.senders,
        "rollout": finding.rollout,
        "waived": finding.waiver.reason if finding.waiver else None,
    }
