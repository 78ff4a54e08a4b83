"""Random arguments and damaged files: the command always exits with one of its codes and never prints a traceback.

The cases come from a plain seeded generator, so that every run tries the same ones; a case is named by its number.
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, CommandResult, command
from tests.cli.probe import probe
from tests.conftest import ALL as FULL_COUNTS

from neuroscript import Engine, Toolset
from neuroscript.cli.parser import COMMANDS
from neuroscript_std.math import toolset as math

CODES = {0, 1, 2, 3, 4, 5, 6, 124, 130}
QUICK = Toolset("probe", tuple(tool for tool in probe if tool.name != "probe.waits"))
ENGINE = functools.partial(Engine, toolsets=(QUICK, math), plugins="none")

NAMES = tuple(tool.name for toolset in (QUICK, math) for tool in toolset)
OPTIONS = ("--json", "--strict", "--report", "--input-json", "--input-json=-", "--version", "--help", "-h", "--", "-")
FILES = ("-", "sandbox/inbox/calls.jsonl", "sandbox", "/dev/null", "nowhere", "/proc/self/mem", "a\0b")
PATTERNS = ("math.*", "*", "[", "[!", "?" * 50, "math__add", "tool.Math.Add")
VALUES = (
    *(
        "1",
        "-1",
        "-1.5e3",
        "0",
        "nan",
        "1e999",
        "9" * 64,
        "null",
        '["a"]',
        '{"a": 1}',
        "[" * 2000,
        "bash",
        "fish",
        "bug",
    ),
    *("num1=", "num1=1", "num2=2", "text=", "text=a", "names=[]", "names", "options={}", "sep=", "parts=[]", "return"),
)
ODD = (
    *("", " ", "\n", "\t", "\x1b[2J", "\x7f", "\u202e", "é", "日本", "\U0001f600", "\ud800", "a\udcff", "\0"),
    *("--jsn", "--json=1", "--input-json=", "-x", "-9", "---", "--=", "=", "==", "=a", "-=", "@file", "%s", "%(prog)s"),
    *("x" * 100_000, "-" * 50_000, "é" * 20_000, "a=" * 10_000, "\ud800" * 1_000, "*" * 300, "[a" * 300),
)
FIRST = {"list": PATTERNS, "show": NAMES, "call": NAMES, "execute": FILES, "completion": ("bash", "zsh", "fish")}
FIRST["audit"] = ("show", "tail", "verify", "stats", "shw")
SERVING = {"web"}
"""Commands that need no arguments to serve until they are interrupted."""

ALL = (*(each for each in COMMANDS if each not in SERVING), *NAMES, *OPTIONS, *FILES, *PATTERNS, *VALUES, *ODD)


def word_lists(count: int) -> Iterator[list[str]]:
    """Yield lists of arguments: half of them plausible, the others random."""
    rng = random.Random(20_261_119)
    for index in range(count):
        if index % 2:
            yield [rng.choice(ALL) for _ in range(rng.randrange(7))]
            continue
        command = rng.choice(("list", "show", "call", "call", "call", "call", "execute", "completion", "audit"))
        further = (*VALUES, *ODD) if command == "call" else (*FILES, *OPTIONS) if command == "audit" else OPTIONS
        words = [rng.choice(FIRST[command]), *rng.choices(further, k=rng.randrange(4 if command == "call" else 2))]
        words[rng.randrange(len(words) + 1) : 0] = rng.choices(OPTIONS, k=rng.choice((0, 0, 1, 2)))
        yield [command, *words]


def damaged(data: bytes, count: int) -> Iterator[bytes]:
    """Yield damaged versions of valid files."""
    rng = random.Random(19)
    ways = (_cut, _flipped, _encoded, _zeroed, _nested, _doubled, _numbers, _shuffled, _replaced, _replaced, _joined)
    for index in range(count):
        yield ways[index % len(ways)](data, rng)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _flipped(data: bytes, rng: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(rng.choice((1, 5, 200))):
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    return bytes(broken)


def _encoded(data: bytes, rng: random.Random) -> bytes:
    encoding = rng.choice(("utf-16", "utf-32-be", "utf-8-sig", "cp1251", "utf-7"))
    return data.decode().encode(encoding, "replace")


def _zeroed(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + b"\0" * rng.choice((1, 1000)) + data[place:]


def _nested(data: bytes, rng: random.Random) -> bytes:
    deep = rng.choice((b"[", b'{"a":', b"[[], {}, ")) * rng.choice((60, 70, 500, 990, 100_000))
    lines = [b'{"name": "math.max", "arguments": [' + b"[" * 500 + b"]" * 500 + b"]}", deep, deep + b"1" + b"]" * 500]
    return b"\n".join([*lines, data])


def _doubled(data: bytes, rng: random.Random) -> bytes:
    key = rng.choice((b'"name": ', b'"id": ', b'"arguments": ', b'"type": ', b'"function": '))
    return data.replace(key, key + b'"x", ' + key, rng.choice((1, 3, -1)))


def _numbers(data: bytes, rng: random.Random) -> bytes:
    number = rng.choice((b"9" * 400, b"9" * 5000, b"-0", b"1e400", b"NaN", b"-Infinity", b"0.1e-400", b"0x10", b"1_0"))
    return data.replace(rng.choice((b"96.2", b"18500", b"0", b"1.0", b"212")), number)


def _shuffled(data: bytes, rng: random.Random) -> bytes:
    words = data.split(b" ")
    rng.shuffle(words)
    return b" ".join(words)


def _joined(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice((b"", b"\r", b"\n\n\n", b",\n", b"\x0c", "\u2028".encode())))


def _replaced(data: bytes, rng: random.Random) -> bytes:
    """Replace a JSON value by another one, in each line."""
    return b"\n".join(json.dumps(_other(json.loads(line), rng)).encode() for line in data.splitlines())


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice([*value])
        return {**value, key: _other(value[key], rng)}
    others = (
        None,
        True,
        0,
        -1,
        1e308,
        2**70,
        "",
        "\ud800",
        "\x1b",
        "null",
        [],
        {},
        [[]],
        {"a": None},
        ["x"] * 50,
        "[1,",
    )
    return rng.choice(others)


def _in_shell(words: list[str]) -> list[bytes]:
    return [word.encode("utf-8", "surrogatepass").replace(b"\0", b"") for word in words]


def test_random_argument_lists(calls: bytes, full_counts: bool) -> None:
    """In this process; the internal error code never occurs, and every other code except the timeout does."""
    seen = set()
    for index, words in enumerate(word_lists(500 if full_counts else 120)):
        result = command(*words, stdin=calls, make_engine=ENGINE)
        seen.add(result.code)

        assert (index, True) == (index, _is_well(result)), (words, result)
    assert {0, 1, 2, 3, 4} <= seen


def _is_well(result: CommandResult) -> bool:
    """Return whether a command exited with a valid code, and printed a message if it failed."""
    reported = (
        result.code == 0
        or result.err.startswith(("neuroscript: ", "usage: neuroscript "))
        or '"error"' in result.out
        or "retry" in result.out
        or "NOT intact" in result.out
        or '"intact": false' in result.out
    )
    return result.code in CODES - {5} and "Traceback" not in result.err + result.out and reported


def test_damaged_files(calls: bytes, full_counts: bool) -> None:
    """In this process with the installed tools; each line produces a line of JSON, and no error is internal."""
    for index, data in enumerate(damaged(calls, 200 if full_counts else 33)):
        result = command("execute", "-", stdin=data, make_engine=None)

        results = [json.loads(line) for line in result.out.splitlines()]
        wanted = sum(1 for line in data.split(b"\n") if line and not line.isspace())
        assert (index, True, wanted, "") == (index, _is_well(result), len(results), result.err)


@pytest.mark.parametrize("index", range(30 if FULL_COUNTS else 6))
def test_cases_in_separate_processes(index: int, calls: bytes, tmp_path: Path) -> None:
    """Arguments and files pass through the system."""
    words = next(islice(word_lists(500), index * 16, None))
    data = next(islice(damaged(calls, 200), index * 6 + index % 5, None))
    file = tmp_path / "calls.jsonl"
    file.write_bytes(data)
    command = [b"execute", os.fsencode(file)] if index % 2 else _in_shell(words)

    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"neuroscript", *command],
        cwd=ROOT,
        input=data,
        capture_output=True,
        timeout=60,
    )

    assert (True, False) == (done.returncode in CODES - {5}, b"Traceback" in done.stderr + done.stdout), done
