"""The types of the examples in the documents; .ci/run checks them with mypy, in its step "types"."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import ALL
from tests.typing.examples import ROOT, main, module_of, run_mypy, run_pyright, write_examples

PAGE = """\
# A page

```python
from neuroscript import Engine

name = "math.add"
```

<!--- invisible-code-block: python
count = 2
-->

```console
$ echo no
```

```python
>>> Engine(deny=1)
>>> count + 1
3
```

- in a list:

  ```python
  total = count + 1
  ```
"""


def test_example_has_the_line_number_of_its_page(tmp_path: Path) -> None:
    """Invisible blocks and doctests are statements too; results and other blocks are left out."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    lines = module_of(page).split("\n")
    assert {number: line for number, line in enumerate(lines, start=1) if line} == {
        4: "from neuroscript import Engine",
        6: 'name = "math.add"',
        10: "count = 2",
        18: "Engine(deny=1)",
        19: "count + 1",
        26: "total = count + 1",
    }


def test_every_page_with_examples_has_a_module(tmp_path: Path) -> None:
    """Each of these modules is valid Python."""
    pages = write_examples(tmp_path)
    texts = {page: (ROOT / page).read_text("utf-8") for page in pages.values()}

    assert "README.md" in texts and "docs/tutorial/first-tool.md" in texts
    assert all("```python" in text for text in texts.values())
    for name in pages:
        compile((tmp_path / name).read_text("utf-8"), name, "exec")


@pytest.mark.full  # the tests of stubs show too that mypy finds what is wrong
def test_wrong_example_is_found(tmp_path: Path) -> None:
    """The finding names the line."""
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "page.py").write_text(module_of(tmp_path / "page.md"))

    done = run_mypy([str(tmp_path / "page.py")])

    assert (done.returncode, done.stdout.count("error:")) == (1, 1)
    assert 'page.py:18: error: Unexpected keyword argument "deny" for "Engine"' in done.stdout


if ALL:  # it needs the npm registry, and 15 seconds

    def test_pyright_accepts_every_example(capsys: pytest.CaptureFixture[str]) -> None:
        """Editors show its findings."""
        assert (main(["--pyright"]), capsys.readouterr().out) == (0, "0 errors, 0 warnings, 0 informations\n")

    def test_pyright_finds_a_wrong_example(tmp_path: Path) -> None:
        """The finding names the line."""
        (tmp_path / "page.md").write_text(PAGE)
        (tmp_path / "page.py").write_text(module_of(tmp_path / "page.md"))

        done = run_pyright([str(tmp_path / "page.py")])

        assert (done.returncode, "page.py:18:8 - error: No parameter named" in done.stdout) == (1, True)
