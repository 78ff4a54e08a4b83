"""The metrics of a gateway: what is counted, and that no argument and no name from a caller is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.place import CLIENTS, POLICY, running, scripted, server_table, text_of, tool
from tests.interop.mcp_place import until


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by its labels."""
    return {
        tuple(label for _, label in sorted(each.labels.items())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.name == name
    }


def test_calls_are_counted_by_client_server_tool_and_code(tmp_path: Path) -> None:
    command = scripted(tmp_path, "notes", [tool("echo"), tool("die"), tool("process")])
    clients = CLIENTS + 'deny = ["notes.die"]\n'
    text = POLICY + "metrics = true\n" + server_table("notes", command) + server_table("gone", ["/gone"]) + clients

    with running(tmp_path, text) as place:
        for name, called in (("alice", "notes__echo"), ("alice", "notes__echo"), ("bob", "notes__echo")):
            place.call(name, called, {"text": "the-content"})
        place.call("bob", "notes__die")
        place.call("bob", "the__unknown_name")
        place.call("alice", "notes__die")
        until(lambda: place.state("notes").status == "running" and place.state("notes").restarts == 1, 20)
        metrics = place.get("/metrics", "alice").text

    counted: dict[tuple[str, ...], Any] = samples(metrics, "neuroscript_calls_total")
    assert counted == {  # client, code, server, tool
        ("alice", "ok", "notes", "echo"): 2,
        ("bob", "ok", "notes", "echo"): 1,
        ("bob", "policy.denied", "notes", "die"): 1,
        ("bob", "tool.not_found", "", ""): 1,
        ("alice", "mcp.closed", "notes", "die"): 1,
    }
    assert samples(metrics, "neuroscript_call_seconds_count") == {("notes", "echo"): 3, ("notes", "die"): 1}
    assert samples(metrics, "neuroscript_server_restarts_total")[("notes",)] == 1
    assert samples(metrics, "neuroscript_server_healthy") == {("notes",): 1, ("gone",): 0}
    assert "the-content" not in metrics
    assert "unknown_name" not in metrics


def test_metrics_are_not_served_if_the_file_does_not_say_so(tmp_path: Path) -> None:
    text = POLICY + server_table("notes", scripted(tmp_path, "notes", [tool("echo")])) + CLIENTS

    with running(tmp_path, text) as place:
        assert place.get("/metrics", "alice").status_code == 404
        assert text_of(place.call("alice", "notes__echo", {"text": "x"})) == "x"
