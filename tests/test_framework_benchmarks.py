"""The comparison with other frameworks: each of its calls is correct, and the page has its table and its picture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.benchmarks import frameworks
from tests.benchmarks.frameworks import BEGIN, END, PAGE, PICTURE, SHAPES, STEPS
from tests.benchmarks.harness import Seconds, Statement


@pytest.fixture(scope="module")
def statements() -> Iterator[frameworks.Statements]:
    with frameworks.engine() as host:
        makers = {**frameworks.entry_points(host), **frameworks.frameworks()}
        yield {(title, shape): make(shape) for title, make in makers.items() for shape in SHAPES}


def test_every_call_returns_the_result_of_its_shape(statements: frameworks.Statements) -> None:
    assert frameworks.wrong_results(statements) == []


def test_a_wrong_result_is_named(statements: frameworks.Statements) -> None:
    """So that no faster call that does something else is compared."""
    (title, shape), *_ = statements
    wrong = {**statements, (title, shape): Statement("4", {})}

    assert frameworks.wrong_results(wrong) == [f"{title}, {shape.title}"]


def test_the_page_has_a_row_for_each_way_to_call(statements: frameworks.Statements) -> None:
    """And a column for each shape, in the same order."""
    page = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    head, _, *rows = [line for line in page.splitlines() if line.startswith("|")]
    titles = list(dict.fromkeys(title for title, _ in statements))
    blank = frameworks.table(titles, dict.fromkeys(statements, Seconds(1e-6, 1e-6)))

    assert head == blank[0]
    assert [row.split(" | ")[0] for row in rows] == [row.split(" | ")[0] for row in blank[2:]]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.000_000_423, "0.42"), (0.000_012_34, "12.3"), (0.001_234, "1,234"), (0.000_1, "100")]
)
def test_times_have_two_or_three_digits(seconds: float, text: str) -> None:
    assert frameworks.as_microseconds(seconds) == text


def test_the_picture_has_a_bar_for_each_step() -> None:
    """A step that measures less than the one before has the shortest bar."""
    times = {
        title: Seconds(wall, wall)
        for (title, _), wall in zip(STEPS, (40e-9, 90e-9, 80e-9, 1e-7, 2e-7, 3e-7, 4e-7), strict=True)
    }
    drawing = frameworks.picture(times)

    assert drawing.count("<rect") == 1 + len(STEPS)
    assert [f">{number} ns<" in drawing for number in (40, 50, 0, 10, 100)] == [True] * 5
    assert ">400 ns in all<" in drawing
    assert all(f">{title}<" in PICTURE.read_text() for title, _ in STEPS)


def test_each_step_executes_all_earlier_ones() -> None:
    """They return what the call returns."""
    with frameworks.engine() as host:
        names = frameworks.step_names(host)
        assert {eval(code, names) for _, code in STEPS} == {5}
