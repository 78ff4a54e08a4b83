"""Reads the fields of a form in HTML and submits them as a browser does, for tests."""

from __future__ import annotations

from html.parser import HTMLParser

from neuroscript.console.forms.form_field import FormField
from neuroscript.console.forms.submission import Submission
from neuroscript.console.rendering import environment


def html_of(tree: tuple[FormField, ...]) -> str:
    """Return the HTML of the fields of a form."""
    return str(environment().get_template("forms/fields.html").module.fields(tree))  # type: ignore[attr-defined]


def submitted(html: str) -> Submission:
    """Return what a browser submits if the user changes nothing in a form."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    return Submission({name: text.replace("\r\n", "\n") for name, text in parser.fields})


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.fields: list[tuple[str, str]] = []
        self._area: tuple[str, list[str]] | None = None
        self._select: tuple[str, list[tuple[str, bool]]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        if tag == "input" and found.get("type") not in ("file", "submit") and "name" in found:
            self.fields.append((found["name"], found.get("value", "").replace("\r", "").replace("\n", "")))
        elif tag == "textarea":
            self._area = found["name"], []
        elif tag == "select":
            self._select = found["name"], []
        elif tag == "option" and self._select is not None:
            self._select[1].append((found.get("value", ""), "selected" in found))

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._area[1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            name, parts = self._area
            text = "".join(parts).removeprefix("\n").replace("\r\n", "\n").replace("\r", "\n")
            self.fields.append((name, text.replace("\n", "\r\n")))
            self._area = None
        elif tag == "select" and self._select is not None:
            name, options = self._select
            chosen = [value for value, is_selected in options if is_selected] or [options[0][0]]
            assert len(chosen) == 1, f"{name} has {len(chosen)} selected options"
            self.fields.append((name, chosen[0]))
            self._select = None
