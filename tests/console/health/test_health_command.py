"""``neuroscript web`` passes the audit log with its key, the lock, the servers and the checks to the console."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import httpx
from tests.audit_records import KEY, outcome
from tests.console.audit.conftest import write
from tests.console.health.conftest import SERVER
from tests.console.page_client import text_of

from neuroscript.cli import main

POLICY = """\
[mcp.far]
command = [{python}, {server}, {tools}]
"""


def test_command_passes_what_the_pages_show(tmp_path: Path, cli_console: Callable[..., Any]) -> None:
    tools, policy, log, lock, key = (
        tmp_path / each for each in ("tools.json", "policy.toml", "a.jsonl", "n.lock", "key")
    )
    tools.write_text(json.dumps([{"name": "add", "inputSchema": {"type": "object"}}]))
    words = {
        name: json.dumps(str(each)) for name, each in (("python", sys.executable), ("server", SERVER), ("tools", tools))
    }
    policy.write_text(POLICY.format(**words))
    key.write_text(KEY.hex())
    key.chmod(0o600)
    write(log, outcome(1), key=KEY)
    assert main(["plugins", "lock", "--output", str(lock)]) == 0
    assert main(["mcp", "tools", "far", "--policy", str(policy), "--accept"]) == 0
    options = [f"--policy={policy}", f"--audit={log}", f"--audit-key={key}", f"--locked={lock}"]
    _, link = cli_console(*options)
    base = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    with httpx.Client(base_url=base, headers={"origin": base}, timeout=60) as client:
        client.get(link)
        found = re.search(r'data-csrf="([^"]+)"', client.get("/health").text)
        assert found
        for path in ("/health/checks", "/health/lock", "/health/servers/far/review", "/audit/verification"):
            assert client.post(path, data={"csrf": found[1]}).status_code == 303
        end = monotonic() + 60
        while monotonic() < end:
            health, server, log_page = (
                text_of(client.get(each).text) for each in ("/health", "/health/servers/far", "/audit/verification")
            )
            if all("ing since" not in each for each in (health, server, log_page)):
                break
            sleep(0.1)

    assert "Everything in use works" in health or "broken, checked at" in health
    assert "No differences from the" in health
    assert re.search(r"far \S*python\S* 1 accepted", health)
    assert "All 1 definitions are the accepted ones" in server
    assert "with this key, forgery is detected too" in log_page
