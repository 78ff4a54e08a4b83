"""The launcher of confined programs: how it ends, and what it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript.isolation.confined_programs import launch_words, own_places
from neuroscript.isolation.confinement import TEMPORARY_PLACES, available

pytestmark = pytest.mark.skipif(
    bool(available()["landlock"] or available()["seccomp"]), reason="this system cannot confine programs"
)

RESTRICT: Final = (
    sys.executable,
    str(Path(__file__).parents[2] / "plugins" / "neuroscript-shell" / "tests" / "restrict.py"),
    "--no-namespaces",
)
"""Runs a command as a user who may not create namespaces."""

START: Final[dict[str, tuple[str, ...]]] = {"namespaces": (), "no namespaces": RESTRICT}


@pytest.fixture(params=START)
def start(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """What starts the launcher."""
    words = START[request.param]
    if words and subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no unprivileged user namespaces")
    return words


def run(start: tuple[str, ...], program: str, *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    words = launch_words(program, options.pop("files", ()), **{"network": False, **options})
    return subprocess.run([*start, *words, *argv], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(200)", 200),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_launcher_ends_as_the_program(start: tuple[str, ...], code: str, expected: int) -> None:
    completed = run(start, sys.executable, "python", "-I", "-c", code)

    assert (completed.returncode, completed.stderr) == (expected, "")


def test_program_receives_its_name_and_only_the_named_variables(
    start: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONE", "1")
    monkeypatch.setenv("TWO", "2")
    code = "import os, sys; print(sys.argv, 'ONE' in os.environ, 'TWO' in os.environ, 'PATH' in os.environ)"

    some = run(start, sys.executable, "name", "-I", "-c", code, "x", environment=["ONE"])
    every = run(start, sys.executable, "name", "-I", "-c", code, "x")

    assert (some.stdout, every.stdout) == ("['-c', 'x'] True False False\n", "['-c', 'x'] True True True\n")


def test_program_has_a_temporary_directory_of_its_own(
    start: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A variable names it, unless namespaces are not permitted."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = (
        "import os, tempfile; found = os.environ.get('TMPDIR', ''); print(found)\n"
        "if found: print(len(tempfile.mkdtemp()) > len(found), os.listdir(found) != [])"
    )

    found = run(start, sys.executable, "name", "-I", "-c", code, environment=[])

    assert found.stdout in ([f"{each}\nTrue True\n" for each in TEMPORARY_PLACES] if not start else ["\n"])


def test_standard_streams_end_with_the_program(start: tuple[str, ...]) -> None:
    """The launcher does not hold the streams open."""
    reading, writing = os.pipe()
    code = f"import os, sys; print(sys.stdin.read(), flush=True); os.close(1); os.close(2); os.read({reading}, 1)"
    words = launch_words(sys.executable, [], network=False)
    command = [*start, *words, "python", "-I", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[reading]) as process:
        os.close(reading)
        assert process.stdin and process.stdout
        process.stdin.write(b"text")
        process.stdin.close()

        assert process.stdout.read() == b"text\n"
        assert process.poll() is None
        os.close(writing)


def test_reason_is_reported_if_the_program_was_not_started(start: tuple[str, ...], tmp_path: Path) -> None:
    """With an exit code of its own."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF" + bytes(60))
    broken.chmod(0o755)

    executed = run(start, str(broken), "broken")
    required = run(start, "/bin/true", "true", require=["no such layer"])

    assert (executed.returncode, executed.stderr) == (
        126,
        "neuroscript: the program was not started: the program cannot be executed: Exec format error\n",
    )
    assert (required.returncode, required.stderr) == (
        125,
        "neuroscript: the program was not started: this system does not provide what the policy requires: "
        "no such layer\n",
    )


def test_signal_ends_a_program_that_is_about_to_start(start: tuple[str, ...]) -> None:
    """At any moment, in the launcher or in the program, and without waiting until the program runs."""
    words = [*start, *launch_words("/bin/sleep", [], network=False), "sleep", "600"]
    ended = []
    for attempt in range(8):
        with subprocess.Popen(words, start_new_session=True, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(0.08 + attempt * 0.02)
            os.killpg(process.pid, signal.SIGTERM)
            try:
                ended.append((process.wait(5), process.stderr and process.stderr.read()))
            finally:
                process.kill()

    assert ended == [(-signal.SIGTERM, "")] * len(ended)


DAEMON: Final = """
import os, sys, time
if not os.fork():
    os.setsid()
    if not os.fork():
        os.chdir(sys.argv[1])
        os.closerange(0, 3)
        open("ready", "w").close()
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1] + "/ready"):
    time.sleep(0.01)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o777)
    yield tmp_path
    for pid in processes_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


def processes_in(directory: Path) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "cwd").readlink() == directory:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_everything_that_the_program_has_started_ends_with_it(start: tuple[str, ...], place: Path) -> None:
    """In a namespace by the kernel, elsewhere by the launcher."""
    arguments = ("-I", "-c", DAEMON, str(place))

    completed = run(start, sys.executable, "python", *arguments, files=[(str(place), ("read", "write", "list"))])
    confined = processes_in(place)
    (place / "ready").unlink()
    subprocess.run([*start, sys.executable, *arguments], check=True, timeout=60)

    assert (completed.returncode, completed.stderr, confined) == (0, "", [])
    assert len(processes_in(place)) == 1


def test_program_ends_with_a_killed_launcher(start: tuple[str, ...], place: Path) -> None:
    words = launch_words(sys.executable, [(str(place), ("read", "list"))], network=False)
    code = f"import os, time; os.chdir({str(place)!r}); print('ready', flush=True); time.sleep(600)"
    with subprocess.Popen([*start, *words, "python", "-I", "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        before = len(processes_in(place))

        process.kill()

        assert process.stdout.read() == b""  # no process holds it open
    assert before == 1


def test_descriptor_is_a_rule_and_is_closed(tmp_path: Path) -> None:
    """It refers to the directory even if its path has changed; the program does not inherit it."""
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "file").write_text("text")
    descriptor = os.open(tmp_path / "place", os.O_PATH)
    words = launch_words("/bin/cat", [(descriptor, ("read", "list"))], network=False)
    (tmp_path / "place").rename(tmp_path / "moved")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "file").write_text("another")

    files = [str(tmp_path / name / "file") for name in ("moved", "place")]
    completed = subprocess.run(
        [*words, "cat", *files], capture_output=True, text=True, check=False, pass_fds=[descriptor]
    )
    inherited = subprocess.run(
        [*launch_words(sys.executable, [(descriptor, ("read",))], network=False), "python", "-I", "-c", OPEN],
        capture_output=True,
        text=True,
        check=True,
        pass_fds=[descriptor],
    )
    os.close(descriptor)

    assert (completed.stdout, completed.stderr) == ("text", f"cat: {files[1]}: Permission denied\n")
    assert json.loads(inherited.stdout) == [0, 1, 2]


OPEN: Final = """
import fcntl, json
def is_open(number):
    try:
        return fcntl.fcntl(number, fcntl.F_GETFD) >= 0
    except OSError:
        return False
print(json.dumps([number for number in range(64) if is_open(number)]))
"""


def test_packages_of_a_virtual_environment_belong_to_its_programs(tmp_path: Path) -> None:
    """Also of a script in it, and those of the Python that it was made with."""
    binaries = tmp_path / "env" / "bin"
    binaries.mkdir(parents=True)
    (tmp_path / "base" / "bin").mkdir(parents=True)
    (tmp_path / "base" / "bin" / "python").touch()
    (binaries / "python").symlink_to(tmp_path / "base" / "bin" / "python")
    (binaries / "tool").write_text(f"#!{binaries}/python\n")

    found = [*own_places(str(binaries / "tool"))]

    assert {f"{tmp_path}/env/lib", f"{tmp_path}/env/pyvenv.cfg", f"{tmp_path}/base/lib"} <= {*found}
    assert not any(each in (str(tmp_path), f"{tmp_path}/env", f"{tmp_path}/base") for each in found)
