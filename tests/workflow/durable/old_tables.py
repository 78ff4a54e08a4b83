"""The tables as older versions created them, with a run that was interrupted and one that has ended."""

from __future__ import annotations

from typing import Final

VERSION_1: Final = (
    """\
CREATE TABLE neuroscript_runs (
    id TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, plan TEXT NOT NULL, inputs TEXT NOT NULL,
    parallel INTEGER NOT NULL, status TEXT NOT NULL, error TEXT, started {double} NOT NULL,
    ended {double}, leader TEXT, seen {double} NOT NULL, lease {double} NOT NULL,
    PRIMARY KEY (id)
)""",
    """\
CREATE TABLE neuroscript_calls (
    id TEXT NOT NULL, run TEXT NOT NULL, node TEXT NOT NULL, item INTEGER, number INTEGER NOT NULL,
    tool TEXT NOT NULL, arguments TEXT NOT NULL, timeout {double}, patience {double} NOT NULL,
    rerun BOOLEAN NOT NULL, worker TEXT, token TEXT, takes INTEGER NOT NULL, begun {double},
    ended {double}, code TEXT, outcome TEXT, PRIMARY KEY (id)
)""",
    "CREATE INDEX ix_neuroscript_calls_run ON neuroscript_calls (run)",
    """\
CREATE TABLE neuroscript_workers (
    id TEXT NOT NULL, host TEXT NOT NULL, seen {double} NOT NULL, lease {double} NOT NULL,
    ended {double}, PRIMARY KEY (id)
)""",
)
"""The statements with which version 1 created its tables; the databases have different names for a double."""

DBOS_1: Final = (
    "CREATE TABLE {dbos}workflow_status (workflow_uuid TEXT PRIMARY KEY, status TEXT)",
    "CREATE TABLE {dbos}workflow_input (workflow_uuid TEXT PRIMARY KEY, inputs TEXT)",
)
"""Tables of DBOS, in which version 1 queued its calls; here only with the columns that matter."""

RUN: Final = """\
INSERT INTO neuroscript_runs
    (id, name, digest, plan, inputs, parallel, status, error, started, ended, leader, seen, lease)
VALUES (:id, :name, :digest, :plan, '{}', 16, :status, NULL, 1.0, :ended, NULL, 1.0, 15.0)"""

CALL: Final = """\
INSERT INTO neuroscript_calls
    (id, run, node, number, tool, arguments, patience, rerun, worker, token, takes, begun, ended, code, outcome)
VALUES (:id, :run, :node, 1, :tool, :arguments, 0.0, :rerun, :worker, :token, :takes, :begun, :ended, :code, :outcome)"""
