"""The content of an SVG picture of a trace, read from the document: boxes, labels and edges with their positions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

import attrs

SVG: Final = "{http://www.w3.org/2000/svg}"
SHIFT: Final = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\)")
STEP: Final = re.compile(r"([MCV])([-\d. ]+)")

Point = tuple[float, float]


def _widths(text: str) -> list[int]:
    return [int(each) for each in text.split()]


# The widths of the ASCII characters, from the space on, in DejaVu Sans, the widest common sans-serif font, in thousandths
# of an em; then those of its bold face.
PLAIN: Final = _widths(
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 636 636 636 337 337 "
    "838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 748 787 603 787 695 635 611 732 684 989 "
    "685 611 685 390 337 390 838 500 500 613 635 550 635 615 352 635 634 278 278 579 278 974 634 612 635 635 411 521 "
    "392 634 592 818 592 592 525 636 337 636 838"
)
BOLD: Final = _widths(
    "348 456 521 838 696 1002 872 306 457 457 523 838 380 415 380 365 696 696 696 696 696 696 696 696 696 696 400 400 "
    "838 838 838 580 1000 774 762 734 830 683 683 821 837 372 372 775 637 995 837 850 733 850 770 720 682 812 774 1103 "
    "771 724 725 457 365 457 838 500 500 675 716 593 716 678 435 716 712 343 343 665 343 1042 712 687 716 716 493 595 "
    "478 712 652 924 645 652 582 712 365 712 838"
)


@attrs.frozen
class Area:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other: Area) -> bool:
        """Return whether another rectangle is inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom

    def meets(self, other: Area) -> bool:
        """Return whether the interiors overlap; borders may touch."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def has_within(self, point: Point) -> bool:
        """Return whether a point is inside, not on the border."""
        return self.left < point[0] < self.right and self.top < point[1] < self.bottom


@attrs.frozen
class Label:
    """A label: its text and its area, in the widest common font."""

    text: str
    area: Area


@attrs.frozen
class Edge:
    """An edge: the names of its nodes, and points along it."""

    ends: tuple[str, str]
    points: tuple[Point, ...]


@attrs.frozen
class Drawn:
    """The content of a picture.

    Attributes:
        page: The area of the page.
        boxes: The box of each node, in order.
        labels: The labels in each node's box.
        lanes: The labels and bars in each node's lane.
        others: All other labels.
        edges: The edges.
        kinds: The names of all elements.
    """

    page: Area
    boxes: list[tuple[str, Area]]
    labels: list[tuple[Label, ...]]
    lanes: list[tuple[tuple[Label, ...], tuple[Area, ...]]]
    others: list[Label]
    edges: list[Edge]
    kinds: set[str]

    @classmethod
    def of(cls, text: str) -> Drawn:
        """Return the content of an SVG document."""
        root = ElementTree.fromstring(text)
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        picture = cls(Area(left, top, left + width, top + height), [], [], [], [], [], set())
        picture._read(root, (0.0, 0.0))
        return picture

    def _read(self, element: ElementTree.Element, at: Point) -> None:
        kind = element.tag.removeprefix(SVG)
        self.kinds.add(kind)
        if shift := SHIFT.fullmatch(element.get("transform", "")):
            at = (at[0] + float(shift[1]), at[1] + float(shift[2]))
        match kind, element.get("class", ""):
            case "g", "node":
                rect = element.find(f"{SVG}rect")
                assert rect is not None
                self.boxes.append((element.attrib["data-node"], _area(rect, at)))
                self.labels.append(tuple(_labels(element, at)))
            case "g", "lane":
                bars = tuple(_area(rect, at) for rect in element.iter(f"{SVG}rect"))
                self.lanes.append((tuple(_labels(element, at)), bars))
            case "text", _:
                self.others.append(_label(element, at))
            case "path", "edge":
                ends = (element.attrib["data-from"], element.attrib["data-to"])
                self.edges.append(Edge(ends, tuple(_points(element.attrib["d"], at))))
            case "defs", _:
                pass
            case _:
                for each in element:
                    self._read(each, at)


def _area(rect: ElementTree.Element, at: Point) -> Area:
    x, y, width, height = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
    return Area(at[0] + x, at[1] + y, at[0] + x + width, at[1] + y + height)


def _labels(element: ElementTree.Element, at: Point) -> Iterator[Label]:
    yield from (_label(text, at) for text in element.iter(f"{SVG}text"))


def _label(element: ElementTree.Element, at: Point) -> Label:
    x, y, size = (float(element.attrib[name]) for name in ("x", "y", "font-size"))
    assert len(element) == 0
    text = element.text or ""
    width = extent(text, size, element.get("font-weight") == "bold")
    left = at[0] + x - {"end": width, "middle": width / 2}.get(element.get("text-anchor", ""), 0.0)
    return Label(text, Area(left, at[1] + y - 0.8 * size, left + width, at[1] + y + 0.25 * size))


def extent(text: str, size: float, is_bold: bool = False) -> float:
    """Return the width of a string; other characters than ASCII count 1.1 em, and wide scripts a third more."""
    table = BOLD if is_bold else PLAIN
    ems = (table[ord(each) - 32] / 1000 if each.isascii() else 1.1 if ord(each) < 0x1100 else 1.3 for each in text)
    return sum(ems) * size


def _points(commands: str, at: Point) -> Iterator[Point]:
    """Yield points along a path: its corners, and twenty on each curve."""
    x = y = 0.0
    assert "".join(f"{step[1]}{step[2]}" for step in STEP.finditer(commands)) == commands
    for step in STEP.finditer(commands):
        given = [float(each) for each in step[2].split()]
        match step[1], given:
            case "M", [x, y]:
                yield at[0] + x, at[1] + y
            case "V", [to]:
                yield from ((at[0] + x, at[1] + y + (to - y) * part / 20) for part in range(1, 21))
                y = to
            case "C", [a, b, c, d, e, f]:
                for part in range(1, 21):
                    t, s = part / 20, 1 - part / 20
                    weights = (s**3, 3 * s * s * t, 3 * s * t * t, t**3)
                    yield (
                        at[0] + sum(map(float.__mul__, weights, (x, a, c, e))),
                        at[1] + sum(map(float.__mul__, weights, (y, b, d, f))),
                    )
                x, y = e, f
            case other:
                raise AssertionError(other)
