"""``--traceback`` and ``NEUROSCRIPT_TRACEBACK``: why a tool or a plugin failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, environment, process, run_installed

SOURCE = '''
from neuroscript import Toolset

shop = Toolset("shop")

@shop.tool()
def price(name: str) -> float:
    """Return the price of a tea."""
    return {"green": 2.0}[name]

@shop.tool()
def warns(rt) -> None:
    """Log a warning with a control character."""
    rt.logger.warning("low on %s", "te\\x1ba")
    rt.logger.info("not shown")

def register(registrar):
    registrar.register(shop)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(SOURCE)
    return path


def expected(plugin: Path) -> str:
    """Return the traceback of the failed tool."""
    return (
        "shop.price failed\n"
        "Traceback (most recent call last):\n"
        f'  File "{plugin}", line 9, in price\n'
        '    return {"green": 2.0}[name]\n'
        "           ~~~~~~~~~~~~~~^^^^^^\n"
        "KeyError: 'black'\n"
    )


FAILED = "neuroscript: shop.price: the tool failed (KeyError)"


def test_failure_without_the_option_is_one_line(plugin: Path) -> None:
    result = run_installed("call", "-p", str(plugin), "shop.price", "black")

    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(FAILED) and result.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("call", "--traceback", "-p", "PLUGIN", "shop.price", "black"),
        ("call", "-p", "PLUGIN", "shop.price", "--traceback", "black"),
        ("call", "-p", "PLUGIN", "shop.price", "black", "--traceback"),
    ],
)
def test_option_prints_the_traceback_in_any_position(words: tuple[str, ...], plugin: Path) -> None:
    result = process(*(str(plugin) if word == "PLUGIN" else word for word in words))

    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{expected(plugin)}{FAILED}")


def test_variable_prints_the_traceback(plugin: Path) -> None:
    """Any value except 0 and the empty string."""
    for value, shows in (("1", True), ("0", False), ("", False)):
        result = process("call", "-p", str(plugin), "shop.price", "black", NEUROSCRIPT_TRACEBACK=value)

        assert (expected(plugin) in result.err) is shows


def test_execute_prints_the_traceback_of_each_failed_line(plugin: Path) -> None:
    """The JSON results do not change."""
    lines = "".join(
        json.dumps({"id": str(n), "name": "shop.price", "arguments": {"name": "black"}}) + "\n" for n in (1, 2)
    )
    plain = process("execute", "-p", str(plugin), "-", stdin=lines.encode())
    result = process("execute", "--traceback", "-p", str(plugin), "-", stdin=lines.encode())

    assert result.err == expected(plugin) * 2
    assert plain.err == ""
    first, second = ([json.loads(line) | {"seconds": 0} for line in each.out.splitlines()] for each in (plain, result))
    assert first == second


@pytest.mark.parametrize("words", [("list",), ("call", "math.add", "1", "2")])
def test_broken_plugin_is_reported_with_its_reason(words: tuple[str, ...], tmp_path: Path) -> None:
    """The traceback is printed if it is enabled."""
    path = tmp_path / "acme.py"
    path.write_text('def connect():\n    raise RuntimeError("please set ACME_KEY")\n\nconnect()\n')
    reason = f"neuroscript: {path}: cannot be loaded: RuntimeError: please set ACME_KEY (acme.py, line 2)\n"

    assert run_installed(words[0], "-p", str(path), *words[1:]) == CommandResult(2, "", reason)
    assert run_installed(words[0], "--traceback", "-p", str(path), *words[1:]) == CommandResult(
        2,
        "",
        f"{reason}"
        "Traceback (most recent call last):\n"
        f'  File "{path}", line 4, in <module>\n'
        "    connect()\n"
        f'  File "{path}", line 2, in connect\n'
        '    raise RuntimeError("please set ACME_KEY")\n'
        "RuntimeError: please set ACME_KEY\n",
    )


def test_broken_plugin_of_a_directory_prints_its_traceback(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "acme.py").write_text("import acme_missing\n")

    result = run_installed("list", "--traceback", "--plugins-dir", str(plugins), "math.abs")

    reason = "ModuleNotFoundError: No module named 'acme_missing'"
    assert result.code == 0
    assert result.err == (
        f"neuroscript: warning: {plugins / 'acme.py'}: cannot be loaded: {reason} (acme.py, line 1)\n"
        "Traceback (most recent call last):\n"
        f'  File "{plugins / "acme.py"}", line 1, in <module>\n'
        "    import acme_missing\n"
        f"{reason}\n"
    )


def test_warnings_of_tools_are_escaped(plugin: Path) -> None:
    assert process("call", "-p", str(plugin), "shop.warns") == CommandResult(
        0, "null\n", "neuroscript: low on te\\x1ba\n"
    )


@pytest.mark.slow
def test_server_always_prints_tracebacks(plugin: Path) -> None:
    """On stderr, which MCP clients log; the client receives only the type."""

    def line(method: str, id: int | None = None, **params: object) -> bytes:
        head = {"jsonrpc": "2.0", "method": method} | ({} if id is None else {"id": id})
        return json.dumps({**head, "params": params}).encode() + b"\n"

    words = [sys.executable, "-m", "neuroscript", "mcp", "serve", "-p", str(plugin)]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        info = {"name": "test", "version": "1"}
        server.stdin.write(line("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=info))
        server.stdin.write(line("notifications/initialized"))
        server.stdin.write(line("tools/call", 2, name="shop__price", arguments={"name": "black"}))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        errors = server.stderr.read().decode()
        server.wait(20)

    assert answers[1]["result"]["isError"] is True
    assert "KeyError: 'black'" not in json.dumps(answers)
    assert errors == expected(plugin)
