"""Measurements of trace pictures: everything is readable, and nothing overlaps."""

from __future__ import annotations

import re
import time
from itertools import combinations
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workflow.drawn import Area, Drawn, Edge
from tests.workflow.traces import NAMES, ODD, PLANS, SHAPES, node, shaped, trace, traces

from neuroscript.io.text import one_line
from neuroscript.workflow import Attempt, Trace, load_trace, trace_svg
from neuroscript.workflow.trace.graph_layout import assign_rows, crossings
from neuroscript.workflow.trace.svg_text import fit_text, width
from neuroscript.workflow.trace.trace import Status

NEAR: Final = 0.051
"""The tolerance in pixels for positions that are written with one decimal."""


def faults(made: Trace) -> list[str]:
    """Return all problems of the picture of a trace."""
    picture = Drawn.of(trace_svg(made))
    boxes = dict(picture.boxes)
    found = [f"{one} and {other} overlap" for one, other in overlapping(picture.boxes)]
    found += [f"{name} is off the page" for name, area in picture.boxes if not picture.page.holds(area)]
    for (name, box), labels in zip(picture.boxes, picture.labels, strict=True):
        found += [f"{each.text} does not fit {name}" for each in labels if not box.holds(each.area)]
        found += [f"{a.text} runs into {b.text}" for a, b in combinations(labels, 2) if a.area.meets(b.area)]
    elsewhere = [*picture.others, *(label for labels, _ in picture.lanes for label in labels)]
    found += [f"{each.text} is off the page" for each in elsewhere if not picture.page.holds(each.area)]
    found += [f"{a.text} runs into {b.text}" for a, b in combinations(picture.others, 2) if a.area.meets(b.area)]
    for labels, bars in picture.lanes:
        places = [each.area for each in labels]
        found += [f"a bar at {bar}" for bar in bars if not picture.page.holds(bar) or any(map(bar.meets, places))]
    for edge in picture.edges:
        found += edge_faults(edge, boxes)
    needed = {(one_line(each), one_line(one.name)) for one in made.nodes for each in one.needs}
    if needed != {edge.ends for edge in picture.edges} or len(needed) != len(picture.edges):
        found.append("the edges are others")
    return found


def overlapping(boxes: list[tuple[str, Area]]) -> list[tuple[str, str]]:
    """Return the names of overlapping boxes."""
    pairs = combinations(boxes, 2)
    return [(one, other) for (one, area), (other, further) in pairs if area.meets(further)]


def edge_faults(edge: Edge, boxes: dict[str, Area]) -> list[str]:
    """Return the problems of an edge: its start, its end, and boxes that it runs through."""
    (start, *_), end = edge.points, edge.points[-1]
    above, below = (boxes[name] for name in edge.ends)
    found = []
    if abs(start[1] - above.bottom) > NEAR or not above.left < start[0] < above.right:
        found.append(f"{edge.ends} begins elsewhere")
    if abs(end[1] - below.top) > NEAR or not below.left < end[0] < below.right:
        found.append(f"{edge.ends} ends elsewhere")
    through = {name for name, box in boxes.items() for point in edge.points if box.has_within(point)}
    return [*found, *(f"{edge.ends} runs through {name}" for name in sorted(through))]


@pytest.mark.parametrize("name", SHAPES)
def test_picture_has_no_faults(name: str) -> None:
    """Boxes do not overlap, labels fit, edges go from border to border and through no box, bars stay on the page."""
    assert [] == faults(SHAPES[name])


@given(traces(st.builds("{}#{}".format, st.text(max_size=90), NAMES), st.none()))
def test_any_trace_has_picture_without_faults(made: Trace) -> None:
    """With any names of nodes and any times."""
    assert [] == faults(made)


def test_measurements_find_moved_and_missing_parts() -> None:
    """Otherwise the tests above would prove nothing."""
    good = trace_svg(SHAPES["chain"])
    moved = {
        re.sub(r'(<rect class="box" x=")[\d.]+(" y=")[\d.]+', r"\g<1>30\g<2>10", good),
        re.sub(r'(d="M[\d.]+ )\d+', r"\g<1>3", good),
        re.sub(r"V\d+\"", 'V9000"', good),
        good.replace(">n1<", f">{'n' * 60}<"),
        good.replace('data-from="n1"', 'data-from="n2"'),
    }

    for text in moved:
        picture = Drawn.of(text)
        boxes = dict(picture.boxes)
        edges = [fault for edge in picture.edges for fault in edge_faults(edge, boxes)]
        fits = all(
            box.holds(each.area)
            for (_, box), labels in zip(picture.boxes, picture.labels, strict=True)
            for each in labels
        )
        assert edges or overlapping(picture.boxes) or not fits
    assert len(moved - {good}) == 5


def test_box_shows_facts_of_node() -> None:
    """Its name, tool, status, duration, attempts and error."""
    attempts = tuple(Attempt(number, None, 100.0 + number, 0.5, "tool.failed") for number in (1, 2, 3))
    made = trace(node("fetch"), node("read", "fetch", status="failed", attempts=attempts), node("x", status="skipped"))
    picture = Drawn.of(trace_svg(made))

    assert [tuple(label.text for label in labels) for labels in picture.labels] == [
        ("fetch", "g.t", "succeeded", "250 ms", "1 attempt"),
        ("read", "g.t", "failed", "2.5 s", "3 attempts, tool.failed"),
        ("x", "g.t", "skipped", "no attempt"),
    ]
    assert [label.text for label in picture.others] == [
        "plan", "succeeded, 3 nodes, 2 s, run r1", "succeeded", "failed", "skipped", "unstarted",
        "0", "1 s", "2 s", "3 s",
    ]  # fmt: skip
    assert [(len(labels), len(bars)) for labels, bars in picture.lanes] == [(1, 1), (1, 3), (2, 0)]


def test_picture_of_cancelled_run_says_so() -> None:
    """In its title and its summary; the nodes that never ran are in the legend."""
    text = trace_svg(SHAPES["cancelled"])
    picture = Drawn.of(text)

    assert "<title>plan, cancelled</title>" in text
    assert "cancelled, 2 nodes, 2 s, run r1" == picture.others[1].text
    assert [("b", "g.t", "unstarted", "no attempt")] == [tuple(each.text for each in picture.labels[1])]


def test_bar_position_and_length_match_times() -> None:
    """The offset is the start of the call, the length its duration."""
    made = trace(
        node("a", attempts=(Attempt(1, None, 101.0, 0.5),)), node("b", attempts=(Attempt(1, None, 100.0, 2.0),))
    )
    ((_, (late,)), (_, (whole,))) = Drawn.of(trace_svg(made)).lanes

    full = whole.right - whole.left
    assert late.left - whole.left == pytest.approx(full / 2, abs=0.1)
    assert late.right - late.left == pytest.approx(full / 4, abs=0.1)


def test_failed_bars_are_drawn_last() -> None:
    """For calls at the same time, such as those of a map."""
    calls = (Attempt(1, 0, 100.0, 1.0), Attempt(1, 1, 100.0, 1.0, "tool.failed"), Attempt(1, 2, 100.0, 1.0))
    lane = trace_svg(trace(node("a", status="failed", attempts=calls))).partition('class="times"')[2]

    assert ["succeeded", "succeeded", "failed"] == re.findall(r'<rect class="(\w+)"', lane)


@pytest.mark.parametrize("seconds", [0.0, 5e-324, 1e-300, 1e-13, -3.0])
def test_run_without_duration_has_time_axis(seconds: float) -> None:
    """Its marks are separate, whatever the clock returned."""
    made = trace(node("a", status="unstarted"), started=0.0, seconds=seconds)

    assert [] == faults(made)


def test_labels_are_text() -> None:
    """In a common font, with the full text in the title of the box; the document contains no images."""
    text = trace_svg(SHAPES["long names"])
    picture = Drawn.of(text)

    assert picture.kinds == {"svg", "title", "style", "defs", "rect", "text", "g", "path"}
    assert 'font-family="Arial, Helvetica, sans-serif"' in text
    assert picture.labels[1][0].text.endswith("W…")
    assert f"<title>{'W' * 64}: g.t, skipped" in text
    assert ODD[-1] == ">" and "\u202e" not in text and "\x1b" not in text


@pytest.mark.parametrize("character", ["\0", "\x0b", "\ud800", "\ufffe", "\u202e", "]]>", "<a>", "&amp;", '"', "'"])
def test_names_are_escaped(character: str) -> None:
    """Characters that XML cannot hold, and markup."""
    made = trace(node(character), node("b", character, status="skipped", reason=character), name=character)

    assert Drawn.of(trace_svg(made)).labels[0][0].text == one_line(character)


def test_same_trace_has_same_picture() -> None:
    """Byte for byte."""
    assert trace_svg(SHAPES["sixty"]) == trace_svg(SHAPES["sixty"])


def test_picture_in_docs_is_current() -> None:
    """To update it: ``neuroscript trace show docs/examples/traces/monday.json --svg …``."""
    folder = PLANS.parent / "traces"

    assert (folder / "monday.svg").read_text("utf-8") == trace_svg(load_trace(folder / "monday.json"))


def test_colours_have_sufficient_contrast() -> None:
    """In the light and the dark theme: at least 4.5 to 1."""
    style = style_of(trace_svg(SHAPES["one"]))
    by_day, by_night = style.split("@media (prefers-color-scheme:dark){")
    words = ("text", ".quiet", *(f".{word}" for word in get_args(Status)))

    for part in (by_day, by_night):
        colours = dict(re.findall(r"([.\w]+)\{[^}]*?fill:#([0-9a-f]{6})", part))
        assert [contrast(colours[word], colours[behind]) >= 4.5 for word in words for behind in (".page", ".box")] == [
            True
        ] * 12


def style_of(text: str) -> str:
    """Return the style sheet of a picture."""
    return text.partition("<style>")[2].partition("</style>")[0]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours as WCAG 2 defines it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(map(float.__mul__, linear, (0.2126, 0.7152, 0.0722)))


def test_large_picture_is_fast_and_small() -> None:
    """Five hundred nodes with many edges, within some seconds and a few megabytes."""

    def needs(rng: Any, number: int) -> list[int]:
        return [max(0, number - rng.randrange(1, 40)) for _ in range(rng.choice((0, 1, 3)))] + [0] if number else []

    before = time.process_time()
    text = trace_svg(shaped(500, needs))

    assert time.process_time() - before < 10
    assert len(text) < 3_000_000


def test_crossed_nodes_are_reordered() -> None:
    """Few edges cross."""
    needs = {"a": (), "b": (), "c": (), "d": ("c",), "e": ("b",), "f": ("a",)}
    layers = assign_rows(needs, 10)

    assert crossings(layers.rows, layers.below) == 0


def test_row_width_is_limited() -> None:
    """Nodes of the same depth are spread over rows of equal length, and nodes that need them are below all of them."""
    names = [f"n{number}" for number in range(10)]
    layers = assign_rows({"a": (), **dict.fromkeys(names, ("a",)), "z": tuple(names)}, 4)

    assert [sum(spot in layers.nodes.values() for spot in row) for row in layers.rows] == [1, 4, 4, 2, 1]


def test_label_is_cut_to_width() -> None:
    """It is never wider."""
    for room in range(20, 200, 7):
        assert width(fit_text("Ünï_WWW_iii_012345 日本語", room, 11), 11) <= room
    assert fit_text("short", 100, 11) == "short"
