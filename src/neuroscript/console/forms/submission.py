"""The fields that a browser has submitted, and the buttons that add or remove items without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs

from neuroscript.console.forms.controls import AS_ENTERED, MAX_ITEMS, NULL
from neuroscript.console.forms.names import ENTRIES, FILE, ITEM, ROOT, STATE, child, part

if TYPE_CHECKING:
    from starlette.datastructures import FormData

ADD: Final = "add:"
REMOVE: Final = "remove:"
MAX_INDEX_DIGITS: Final = 9

MAX_STEPS: Final = 40
"""Maximum number of steps in the name of a field; the deepest control of a form has fewer. Each index in a name stands
for a list, so without a limit the lists of one long name would fill the memory."""


@attrs.frozen(slots=False)
class Submission:
    """The fields of one form.

    Attributes:
        texts: The content of each field by its name.
        files: The content of each uploaded file by the name of its field.
    """

    texts: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    files: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)

    @classmethod
    async def of_form(cls, form: FormData, root: str = ROOT) -> Submission:
        """Return the fields of a form whose names begin with *root*; line breaks become ``\\n``.

        Fields whose names no control can have are left out.
        """
        texts: dict[str, str] = {}
        files: dict[str, bytes] = {}
        for name, value in form.multi_items():
            if not name.startswith(f"{root}.") or name.count(".") >= MAX_STEPS:
                continue
            if isinstance(value, str):
                texts[name] = value.replace("\r\n", "\n")
            elif value.filename:
                files[name] = await value.read()
        return cls(texts, files)

    def text(self, name: str, default: str = "") -> str:
        """Return the text of a field."""
        return self.texts.get(name, default)

    def state(self, name: str) -> str:
        """Return how the value of a field is read."""
        return self.texts.get(part(name, STATE), "")

    def file(self, name: str) -> bytes | None:
        """Return the file that was uploaded for a field, or None."""
        return self.files.get(part(name, FILE))

    def items(self, name: str) -> list[int]:
        """Return the indexes of the items of a list, or of the entries of a map."""
        return self._indexes.get(name, [])

    @cached_property
    def _indexes(self) -> Mapping[str, list[int]]:
        found: dict[str, set[int]] = {}
        for name in (*self.texts, *self.files):
            for above, index in _items_in(name):
                found.setdefault(above, set()).add(index)
        return {name: sorted(indexes) for name, indexes in found.items()}

    def changed_by(self, action: str) -> Submission:
        """Return the fields after a button was pressed; an unknown button changes nothing.

        Args:
            action: The value of the button, such as ``add:arg.tags`` or ``remove:arg.tags.1``.
        """
        if action.startswith(ADD):
            return self._with_item(action.removeprefix(ADD))
        if action.startswith(REMOVE):
            return self._without(action.removeprefix(REMOVE))
        return self

    def _with_item(self, name: str) -> Submission:
        indexes = self.items(name)
        if len(indexes) >= MAX_ITEMS or not name.startswith(f"{ROOT}.") or name.count(".") >= MAX_STEPS:
            return self
        added = child(name, indexes[-1] + 1 if indexes else 0)
        texts = {**self.texts, part(added, ITEM): "1"}
        above = name.removesuffix(f".{ENTRIES}")
        if self.state(above) == NULL:
            texts[part(above, STATE)] = AS_ENTERED
        return Submission(texts, self.files)

    def _without(self, name: str) -> Submission:
        def is_other(key: str) -> bool:
            return key != name and not key.startswith(f"{name}.")

        texts = {key: text for key, text in self.texts.items() if is_other(key)}
        return Submission(texts, {key: data for key, data in self.files.items() if is_other(key)})


def _items_in(name: str) -> Iterator[tuple[str, int]]:
    """Yield each list that the name of a field goes through, and the index within it."""
    steps = name.split(".")
    for place, step in enumerate(steps):
        if place and step.isascii() and step.isdigit() and len(step) <= MAX_INDEX_DIGITS and str(int(step)) == step:
            yield ".".join(steps[:place]), int(step)
