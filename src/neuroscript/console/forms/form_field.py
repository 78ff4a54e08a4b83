"""One field of a form as templates render it."""

from __future__ import annotations

import attrs

from neuroscript.console.forms.names import ENCODING, FILE, ITEM, STATE, VARIANT, part


@attrs.frozen
class Choice:
    """An option of a list to select from."""

    value: str
    label: str
    is_selected: bool = False


@attrs.frozen(kw_only=True)
class FormField:
    """One field with its parts.

    Attributes:
        name: The name of the field in the form.
        id: The id of its control.
        label: Its label: the name of the argument or key, or the number of the item.
        control: What shows its value: a `Control`, or ``entry`` for an entry of a map.
        where: Its place in the arguments, as in errors.
        type: The type that is expected, as text.
        hint: Whether it is required, and its default.
        description: The description in the spec.
        is_required: Whether it must have a value.
        text: The text of its control.
        is_multiline: Whether the text may have several lines.
        input_type: The type of the ``input`` element.
        input_mode: Which keyboard a phone shows.
        placeholder: An example.
        options: The options to select from.
        states: How the value can be read; empty if there is only one way.
        suggestions: Values to suggest.
        encodings: How the text of a byte string can be read.
        children: The fields within it.
        add: The action of the button that adds an item, or ``""``.
        remove: The action of the button that removes this item, or ``""``.
        problems: What is wrong with the value.
        note: What coercion makes of the value.
    """

    name: str
    id: str
    label: str
    control: str
    where: str
    type: str = ""
    hint: str = ""
    description: str = ""
    is_required: bool = False
    text: str = attrs.field(default="", repr=False)
    is_multiline: bool = False
    input_type: str = "text"
    input_mode: str = ""
    placeholder: str = ""
    options: tuple[Choice, ...] = ()
    states: tuple[Choice, ...] = ()
    suggestions: tuple[str, ...] = ()
    encodings: tuple[Choice, ...] = ()
    children: tuple[FormField, ...] = ()
    add: str = ""
    remove: str = ""
    problems: tuple[str, ...] = ()
    note: str = ""

    @property
    def state_name(self) -> str:
        """The name of the field that says how the value is read."""
        return part(self.name, STATE)

    @property
    def variant_name(self) -> str:
        """The name of the field with the index of the alternative."""
        return part(self.name, VARIANT)

    @property
    def item_name(self) -> str:
        """The name of the field that is present for each item."""
        return part(self.name, ITEM)

    @property
    def file_name(self) -> str:
        """The name of the field with an uploaded file."""
        return part(self.name, FILE)

    @property
    def encoding_name(self) -> str:
        """The name of the field that says how the text of a byte string is read."""
        return part(self.name, ENCODING)

    @property
    def described_by(self) -> str:
        """The ids of the elements that describe the control."""
        parts = (("hint", self.hint or self.description), ("error", self.problems), ("note", self.note))
        return " ".join(f"{self.id}-{name}" for name, text in parts if text)
