"""The blocks of a page run in order in each worker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
pytest_plugins = ["pages"]
pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()
"""

PAGE = """
```python
import os
seen = [os.getpid()]
```

```python
seen.append(2)
```

```python
seen.append(3)
assert seen[1:] == [2, 3] and seen[0] == os.getpid(), seen
```
"""


@pytest.mark.slow
def test_end_of_a_page_runs_without_its_start_in_this_process(tmp_path: Path) -> None:
    """Each block runs once in a process, in the order of the page."""
    shutil.copy(Path(__file__).with_name("pages.py"), tmp_path / "pages.py")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "other.md").write_text(PAGE)
    done = [
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.splitlines()[-1]
        for words in ([], ["-p", "xdist.plugin", "-n", "3"])
    ]

    assert [line.split(" in ")[0] for line in done] == ["6 passed", "6 passed"]
