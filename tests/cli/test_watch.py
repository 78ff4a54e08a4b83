"""``call --watch``: a saved file is reloaded and the call repeated, and errors in the file are reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.cli.conftest import command, start
from tests.terminals import Terminal

PLUGIN = '''
def shout(text: str) -> str:
    """Repeat a string."""
    return text.upper() + "{end}"

def register(registrar):
    registrar.toolset("mine").tool()(shout)
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin of one file, without installed plugins."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "")
    path = tmp_path / "plugins" / "tools.py"
    path.parent.mkdir()
    save(path, "!")
    return path


def save(path: Path, end: str) -> None:
    """Write a plugin as many editors do: replace it by another file."""
    put(path, PLUGIN.format(end=end))


def put(path: Path, text: str, mode: int = 0o644) -> None:
    """Create or replace a whole file at once."""
    new = path.with_suffix(".swp")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)


@attrs.frozen(eq=False)
class Watching:
    """A running command and its two streams."""

    child: subprocess.Popen[bytes]

    def result(self) -> str:
        """Wait for a line on stdout."""
        return self._line(self.child.stdout)

    def said(self) -> str:
        """Wait for a message."""
        return self._line(self.child.stderr).removeprefix("neuroscript: ")

    def _line(self, stream: Any) -> str:
        line: str = stream.readline().decode().rstrip("\n")
        return line

    def interrupt(self) -> tuple[int, str]:
        """Interrupt the command, and return its exit code and last message."""
        self.child.send_signal(signal.SIGINT)
        out, err = self.child.communicate(timeout=60)
        assert out == b""
        return self.child.returncode, err.decode()


@pytest.fixture
def watch() -> Iterator[Callable[..., Watching]]:
    """Return a function that starts the command in a separate process."""
    started: list[Watching] = []

    def begin(*words: str, **how: Any) -> Watching:
        started.append(Watching(start("call", "--watch", *words, **how)))
        return started[-1]

    yield begin
    for each in started:
        each.child.kill()
        each.child.communicate(timeout=60)


INTERRUPTED = (130, "neuroscript: interrupted\n")


def test_saved_file_is_reloaded_and_called_again(plugin: Path, watch: Callable[..., Watching]) -> None:
    """Each time it is saved, until the command is interrupted."""
    seen = watch("-p", str(plugin), "mine.shout", "hello")
    results = [seen.result()]
    for end in ("?", "??"):
        save(plugin, end)
        assert f"reloaded {plugin}" == seen.said()
        results.append(seen.result())

    assert ["HELLO!", "HELLO?", "HELLO??"] == results
    assert INTERRUPTED == seen.interrupt()


def test_incomplete_file_changes_nothing(plugin: Path, watch: Callable[..., Watching]) -> None:
    """The error is reported; the complete file is loaded later."""
    seen = watch("-p", str(plugin), "mine.shout", "hello")
    seen.result()
    messages = []
    for text in ("def shout(", "register = 1", None):
        plugin.unlink() if text is None else put(plugin, text)
        messages.append(seen.said())
    save(plugin, "?")

    assert [
        f"{plugin}: cannot be loaded: SyntaxError: '(' was never closed ({plugin.name}, line 1); its previous tools remain",
        f"{plugin}: it has neither a Toolset at its top level, such as shop = Toolset('shop'), nor a function register(registrar); its previous tools remain",
        f"{plugin}: no such Python file or package (a directory with __init__.py); its previous tools remain",
    ] == messages
    assert (f"reloaded {plugin}", "HELLO?") == (seen.said(), seen.result())
    assert INTERRUPTED == seen.interrupt()


def test_changed_module_reloads_its_package(plugin: Path, watch: Callable[..., Watching]) -> None:
    package = plugin.parent / "package"
    package.mkdir()
    save(package / "tools.py", "!")
    (package / "__init__.py").write_text("from .tools import register\n")
    seen = watch("-p", str(package), "mine.shout", "a")
    first = seen.result()
    save(package / "tools.py", "?")

    assert ("A!", f"reloaded {package}", "A?") == (first, seen.said(), seen.result())


def test_directory_is_watched_for_new_files(plugin: Path, watch: Callable[..., Watching]) -> None:
    """A plugin may be broken or missing at first, and a tool may not exist yet."""
    (plugin.parent / "broken.py").write_text("1 +")
    seen = watch("--plugins-dir", str(plugin.parent), "yours.shout", "a")
    assert seen.said().startswith("warning: ")
    assert "unknown tool yours.shout" == seen.said().partition(";")[0]
    messages = []
    for name, group in (("broken", "theirs"), ("new", "yours")):
        other = plugin.with_name(f"{name}.py")
        save(other, "?")
        text = other.read_text().replace("mine", group)
        seen_before = seen.said()
        put(other, text)
        messages += [seen_before.partition("; ")[2], seen.said().partition(" ")[0]]
        if group == "theirs":
            assert seen.said().startswith("unknown tool yours.shout")

    assert ["its previous tools remain", "reloaded"] * 2 == messages
    assert "A?" == seen.result()


def test_file_that_other_users_can_change_is_not_loaded(plugin: Path, watch: Callable[..., Watching]) -> None:
    """The other plugins of the directory are loaded."""
    seen = watch("--plugins-dir", str(plugin.parent), "mine.shout", "a")
    first = seen.result()
    new = plugin.with_name("new.py")
    put(new, "x = 1\n", 0o666)
    output = seen.said()

    assert "A!" == first
    assert output.startswith(f"{new}: it is not loaded: other users can write to {new}; ")


def test_error_of_the_tool_stops_nothing(plugin: Path, watch: Callable[..., Watching]) -> None:
    """Errors are printed as usual, also with --json and --dry-run."""
    seen = watch("-p", str(plugin), "--json", "mine.shout", "a")
    results = [json.loads(seen.result())]
    text = plugin.read_text()
    for code in ("return 5", "raise ValueError", 'return "b"'):
        put(plugin, text.replace('return text.upper() + "!"', code))
        assert seen.said().startswith("reloaded")
        results.append(json.loads(seen.result()))
    foreseen = watch("-p", str(plugin), "--dry-run", "mine.shout", "a")
    before = foreseen.result()
    put(plugin, text.replace("text: str", "text: int"))

    assert [True, False, False, True] == [each["ok"] for each in results]
    assert "mine.shout: would run (allowed by *)" == before
    assert foreseen.said().startswith("reloaded")
    assert foreseen.result().startswith("mine.shout: invalid arguments: text: expected int")


def test_own_plugin_directory_is_watched(config: Path, plugin: Path, watch: Callable[..., Watching]) -> None:
    """No option is needed."""
    own = config.parent / "plugins"
    config.parent.mkdir()
    plugin.parent.rename(own)
    seen = watch("mine.shout", "a")
    first = seen.result()
    save(own / "tools.py", "?")

    assert ("A!", f"reloaded {own / 'tools.py'}", "A?") == (first, seen.said(), seen.result())


def test_edit_during_the_call_is_detected(plugin: Path, watch: Callable[..., Watching]) -> None:
    """The watcher reads the files before they are loaded."""
    waits = 'print("ready", flush=True); input(); return "old"'
    put(plugin, plugin.read_text().replace('return text.upper() + "!"', waits))
    seen = watch("-p", str(plugin), "mine.shout", "a")
    assert seen.child.stdin is not None
    assert "ready" == seen.result()
    save(plugin, "?")
    seen.child.stdin.write(b"go on\n")
    seen.child.stdin.flush()

    assert ("old", f"reloaded {plugin}", "A?") == (seen.result(), seen.said(), seen.result())


def test_watch_needs_a_local_plugin() -> None:
    """It is a usage error otherwise; so is a plugin that cannot be loaded at the start."""
    result = command("call", "--watch", "probe.echo", "a")
    message = "--watch needs a local plugin; add -p FILE or --plugins-dir DIR"

    assert (2, "", f"neuroscript: {message}\n") == (result.code, result.out, result.err)
    assert 2 == command("call", "--watch", "-p", "nowhere.py", "probe.echo", "a").code


def test_watch_continues_at_a_terminal_until_ctrl_c(plugin: Path) -> None:
    """Messages appear between the results."""
    words = ["call", "--watch", "-p", str(plugin), "mine.shout", "a"]
    terminal = Terminal(f"import sys; from neuroscript.cli import main; sys.exit(main({words!r}))")
    try:
        terminal.see("A!\r\n")
        save(plugin, "?")
        terminal.see(f"neuroscript: reloaded {plugin}\r\nA?\r\n")
        os.write(terminal.ours, b"\x03")
        assert terminal.rest().endswith("neuroscript: interrupted\r\n")
    finally:
        terminal.close(130)
