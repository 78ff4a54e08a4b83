"""The script that plays a new user: which blocks of a page it runs, and when one fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

PAGE = """\
# A page

```python
number = 1
```

```console
$ echo one \\
  two
one two
```

```text
a table of commands     no command
$ echo "3 passed in 0.1 s"
3 passed in 0.2 s
```

```text
only a result
```

<!-- skip: next -->
```python
raise ValueError
```

```sh
# a comment
python3 dev.py wheels
mkdir -p new && \\
cd new
```

```sh
export KEY=…
```

```toml
key = 1
```
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, which imports another one of its directory."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    before = {*sys.modules}
    yield import_module("newcomer")
    for name in ({*sys.modules} - before) & {"newcomer", "distributions"}:
        del sys.modules[name]


def test_blocks_are_executed_by_their_language(script: Any) -> None:
    """Placeholders, results, other languages and the commands of developers are not executed."""
    found = [*script.blocks(PAGE)]
    lines = {number: script.lines_of(language, text) for number, language, text in found if language in ("text", "sh")}

    assert [(number, language, script.skipped(language, text)) for number, language, text in found] == [
        (3, "python", ""),
        (7, "console", ""),
        (13, "text", ""),
        (19, "text", "it contains no command for a user"),
        (28, "sh", ""),
        (35, "sh", "it contains a placeholder"),
        (39, "toml", "its language is not executed"),
    ]
    assert lines[13] == ['echo "3 passed in 0.1 s"']
    assert lines[28] == ["mkdir -p new && cd new"]


def test_terminal_remembers_and_reports_what_fails(script: Any, tmp_path: Path) -> None:
    """A console block must print what it shows; another block must only succeed."""
    with script.Terminal(tmp_path, {**os.environ}) as terminal:
        assert [*script.succeeded(terminal, ["mkdir new && cd new", "echo 3 passed"])] == []
        assert [*script.shown(terminal, "$ pwd\n.../new\n$ cat\n$ printf 'no end of line'\nno end of line\n")] == []
        assert [*script.shown(terminal, "$ echo one\ntwo\n")] == ["$ echo one\nexpected:\ntwo\n\ngot:\none\n"]
        assert [*script.succeeded(terminal, ["echo one; (exit 3)"])] == ["$ echo one; (exit 3)\none\nexit code 3"]
        assert [*script.succeeded(terminal, ["exit 0"])] == ["$ exit 0\nthe program ended\nexit code 1"]


def test_interpreter_remembers_and_reports_what_fails(script: Any, tmp_path: Path) -> None:
    """A failed block has a traceback, and the next one runs."""
    with script.Interpreter(Path(sys.prefix), tmp_path, {**os.environ}) as interpreter:
        assert [*interpreter.execute("number = 1\nprint('no end of line', end='')")] == []
        (problem,) = interpreter.execute("print(number)\nraise ValueError('two')")
        assert [*interpreter.execute("assert number == 1")] == []

    assert problem.startswith("1\nTraceback")
    assert problem.endswith("ValueError: two\n")
