"""The fields of a form as a tree, which templates render."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.context import Where, place
from neuroscript.coercion.rule_text import expected_type
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.coercion.types import NUMBER_TYPES, TYPES, ArgType
from neuroscript.console.forms.controls import (
    AS_ENTERED,
    AS_JSON,
    AUTO,
    CONTAINERS,
    MAX_CONTROLS,
    MAX_ITEMS,
    NULL,
    Control,
    control_of,
    default_text,
    is_open,
    item_spec,
    key_spec,
    value_spec,
)
from neuroscript.console.forms.form_field import Choice, FormField
from neuroscript.console.forms.names import ENCODING, ENTRIES, KEY, ROOT, VALUE, VARIANT, child, part
from neuroscript.console.forms.reader import TooManyFields
from neuroscript.console.forms.submission import ADD, REMOVE, Submission
from neuroscript.console.forms.values import is_enterable, is_multiline
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import presence_phrases, to_json
from neuroscript.io.text import NotJSON, json_text, parse_json
from neuroscript.spec.tool_spec import ArgSpec

MAX_LABEL_CHARS: Final = 80
MAX_HINT_CHARS: Final = 400
MAX_SUGGESTIONS: Final = 200

Suggestions = Callable[[str], Sequence[str]]
"""Returns values to suggest for the argument with this name, such as files of the sandbox."""


def fields_of(
    args: Sequence[ArgSpec],
    submission: Submission,
    *,
    variadic: bool = False,
    problems: Mapping[str, Sequence[str]] | None = None,
    notes: Mapping[str, str] | None = None,
    suggest: Suggestions | None = None,
    prefix: str = "f-",
) -> tuple[FormField, ...]:
    """Return the fields of a form with what was submitted. Secrets are never included.

    Args:
        variadic: Whether the last argument takes a list of values.
        problems: The problems by place, as in errors.
        notes: What coercion makes of the values, by place.
        suggest: Returns values to suggest for an argument.
        prefix: The first characters of all ids, which must differ between the forms of a page.

    Raises:
        TooManyFields: The form is too large.
    """
    builder = _Builder(submission, problems or {}, notes or {}, suggest, prefix)
    last = args[-1] if variadic else None
    return tuple(builder.argument(arg, is_variadic=arg is last) for arg in args)


class _Builder:
    def __init__(
        self,
        submission: Submission,
        problems: Mapping[str, Sequence[str]],
        notes: Mapping[str, str],
        suggest: Suggestions | None,
        prefix: str,
    ) -> None:
        self._sent = submission
        self._problems = problems
        self._notes = notes
        self._suggest = suggest
        self._prefix = prefix
        self._controls = 0

    def argument(self, arg: ArgSpec, *, is_variadic: bool) -> FormField:
        name, where = child(ROOT, arg.name), (None, arg.name)
        if not is_variadic:
            field = self._field(arg, name, where, arg.name)
            return self._with_suggestions(field, arg)
        common = self._common(arg, name, where, arg.name)
        hint = ", ".join(presence_phrases(arg, further=True))
        common |= {"hint": hint, "type": f"list of {expected_type(arg)}", "is_required": bool(arg.required)}
        if self._sent.state(name) == AS_JSON and not arg.holds_secret:
            return self._json(common, name, is_item=False)
        items = self._item_fields(arg, name, where, 1)
        return FormField(**common, control=Control.LIST, children=items, add=self._add(name))

    def _with_suggestions(self, field: FormField, arg: ArgSpec) -> FormField:
        if self._suggest is None:
            return field
        found = tuple(self._suggest(arg.name))[:MAX_SUGGESTIONS]
        if field.control == Control.LIST:
            items = tuple(_with_suggested(each, found) for each in field.children)
            return attrs.evolve(field, children=items)
        return _with_suggested(field, found)

    def _field(
        self, arg: ArgSpec, name: str, where: Where, label: str, level: int = 0, *, is_item: bool = False, **more: Any
    ) -> FormField:
        """Return the field of a value, with its parts."""
        self._controls += 1
        if self._controls > MAX_CONTROLS:
            raise TooManyFields(f"a form may have at most {MAX_CONTROLS} fields; pass the arguments as JSON")
        control, state = control_of(arg, level), self._sent.state(name)
        common = self._common(arg, name, where, label, is_item=is_item) | more
        is_json = state == AS_JSON and not arg.holds_secret
        if control is Control.SECRET or (state == AS_JSON and arg.holds_secret):
            states = self._states(arg, Control.SECRET, name, is_item)
            return FormField(**common | {"input_type": "password", "note": ""}, control=Control.SECRET, states=states)
        if is_json or control is Control.JSON:
            return self._json(common, name, is_item=is_item, arg=arg)
        common["states"] = self._states(arg, control, name, is_item)
        if control in CONTAINERS:
            return self._container(arg, control, common, name, where, level)
        if control is Control.UNION:
            return self._union(arg, common, name, where, level, is_item)
        return self._scalar(arg, control, common, name, is_item)

    def _common(self, arg: ArgSpec, name: str, where: Where, label: str, *, is_item: bool = False) -> dict[str, Any]:
        shown = place(where)
        return {
            "name": name,
            "id": f"{self._prefix}{name}",
            "label": label[:MAX_LABEL_CHARS],
            "where": shown,
            "type": expected_type(arg),
            "hint": "" if is_item else _hint(arg),
            "description": arg.description,
            "is_required": not is_item and bool(arg.required),
            "problems": tuple(self._problems.get(shown, ())),
            "note": self._notes.get(shown, ""),
        }

    def _states(self, arg: ArgSpec, control: Control, name: str, is_item: bool) -> tuple[Choice, ...]:
        """Return the ways to read a value, or none if there is only one."""
        now = self._sent.state(name)
        ways = [(AUTO, "as entered" if is_item or (arg.required and control in CONTAINERS) else "left out if empty")]
        if control in (Control.TEXT, Control.BYTES, Control.SECRET, *CONTAINERS) and not is_item:
            is_always_present = control in CONTAINERS and arg.required
            is_text = control in CONTAINERS or control is Control.BYTES or arg.holds_text
            if (is_text and not is_always_present) or now == AS_ENTERED:
                ways.append((AS_ENTERED, "keep if empty"))
        if arg.nullable or now == NULL:
            ways.append((NULL, "null"))
        if now == AS_JSON or (control is Control.TEXT and arg.type in (ArgType.STRING, ArgType.ENTITYID)):
            ways.append((AS_JSON, "JSON"))
        return () if len(ways) == 1 else tuple(Choice(value, label, value == now) for value, label in ways)

    def _json(self, common: dict[str, Any], name: str, *, is_item: bool, arg: ArgSpec | None = None) -> FormField:
        states: tuple[Choice, ...] = ()
        if self._sent.state(name) == AS_JSON:
            auto = Choice(AUTO, "as entered" if is_item else "omit if empty")
            null = (Choice(NULL, "null"),) if arg is not None and arg.nullable else ()
            states = (auto, *null, Choice(AS_JSON, "JSON", True))
        text, example = self._sent.text(name), "" if arg is None else TYPES[arg.type].example
        fields = {"text": text, "states": states, "placeholder": example or "JSON", "is_multiline": True}
        return FormField(**common | fields, control=Control.JSON)

    def _scalar(self, arg: ArgSpec, control: Control, common: dict[str, Any], name: str, is_item: bool) -> FormField:
        text = self._sent.text(name, default_text(arg, control, is_item=is_item))
        fields: dict[str, Any] = {"text": text, "placeholder": _example(arg)}
        match control:
            case Control.TEXT:
                fields |= self._text(arg, text, common["states"])
            case Control.NUMBER:
                fields["input_mode"] = "numeric" if arg.type is ArgType.INT else "decimal"
            case Control.BOOLEAN:
                words = [("", "not set"), ("true", "true"), ("false", "false")]
                fields["options"] = tuple(Choice(value, label, value == text) for value, label in words)
            case Control.NULL:
                words = [("", "not set"), ("null", "null")][is_item:]
                fields["options"] = tuple(Choice(value, label, value == text) for value, label in words)
            case Control.CHOICE:
                fields["options"] = _choices(arg, text)
            case Control.BYTES:
                encoding = self._sent.text(part(name, ENCODING), "text")
                words = [("text", "text (UTF-8)"), ("base64", "Base64")]
                fields["encodings"] = tuple(Choice(value, label, value == encoding) for value, label in words)
                fields["is_multiline"] = True
        return FormField(**common | fields, control=control)

    def _text(self, arg: ArgSpec, text: str, states: tuple[Choice, ...]) -> dict[str, Any]:
        """Return how a string is shown; one that a page cannot show exactly is shown as JSON."""
        if arg.format == "date" and (text == "" or FORMATS["date"].read_text(text) == text):
            return {"input_type": "date"}
        if is_enterable(arg, text):
            return {"is_multiline": is_multiline(arg)}
        ways = tuple(attrs.evolve(each, is_selected=False) for each in states if each.value != AS_JSON)
        ways = (*(ways or (Choice(AUTO, "as entered"),)), Choice(AS_JSON, "JSON", True))
        return {"text": json_text(text), "states": ways, "is_multiline": True}

    def _container(
        self, arg: ArgSpec, control: Control, common: dict[str, Any], name: str, where: Where, level: int
    ) -> FormField:
        if control is Control.LIST:
            items = self._item_fields(item_spec(arg), name, where, level + 1)
            return FormField(**common, control=control, children=items, add=self._add(name))
        if control is Control.TUPLE:
            items = tuple(
                self._field(each, child(name, index), (where, index), _item_label(each, index), level + 1, is_item=True)
                for index, each in enumerate(arg.prefix_items)
            )
            return FormField(**common, control=control, children=items)
        keys = tuple(
            self._field(key, child(name, key.name), (where, key.name), key.name, level + 1) for key in arg.keys
        )
        if not is_open(arg):
            return FormField(**common, control=control, children=keys)
        entries = part(name, ENTRIES)
        others = self._entry_fields(arg, entries, where, level + 1)
        return FormField(**common, control=control, children=(*keys, *others), add=self._add(entries))

    def _item_fields(self, arg: ArgSpec, name: str, where: Where, level: int) -> tuple[FormField, ...]:
        return tuple(
            self._field(
                arg,
                child(name, index),
                (where, number),
                _item_label(arg, number),
                level,
                is_item=True,
                remove=f"{REMOVE}{child(name, index)}",
            )
            for number, index in enumerate(self._sent.items(name))
        )

    def _entry_fields(self, arg: ArgSpec, entries: str, where: Where, level: int) -> tuple[FormField, ...]:
        keys, values = key_spec(arg), value_spec(arg)
        found = []
        for number, index in enumerate(self._sent.items(entries), 1):
            entry = child(entries, index)
            key_where: Where = (where, f"key {index + 1}")
            key_name = part(entry, KEY)
            value_where = (where, _key_text(keys, self._sent.text(key_name)))
            key = self._field(keys, key_name, key_where, "Key", level, is_item=True)
            value = self._field(values, part(entry, VALUE), value_where, "Value", level, is_item=True)
            found.append(
                FormField(
                    name=entry,
                    id=f"{self._prefix}{entry}",
                    label=f"Entry {number}",
                    control="entry",
                    where=place(key_where),
                    children=(key, value),
                    remove=f"{REMOVE}{entry}",
                )
            )
        return tuple(found)

    def _union(
        self, arg: ArgSpec, common: dict[str, Any], name: str, where: Where, level: int, is_item: bool
    ) -> FormField:
        chosen = self._sent.text(part(name, VARIANT), default_text(arg, Control.UNION, is_item=is_item))
        labels = [_cut(_variant_label(arg, each), MAX_LABEL_CHARS) for each in arg.any_of]
        options = [Choice(str(index), label, str(index) == chosen) for index, label in enumerate(labels)]
        if not (is_item or arg.required) or chosen == "":
            options.insert(0, Choice("", "not set", chosen == ""))
        children: tuple[FormField, ...] = ()
        index = next((index for index in range(len(labels)) if str(index) == chosen), None)
        if index is not None:
            inner = self._field(arg.any_of[index], part(name, VALUE), where, "Value", level + 1, is_item=is_item)
            children = (attrs.evolve(inner, hint="", is_required=common["is_required"]),)
            common = common | {"problems": (), "note": ""}
        return FormField(**common, control=Control.UNION, options=tuple(options), children=children)

    def _add(self, name: str) -> str:
        return f"{ADD}{name}" if len(self._sent.items(name)) < MAX_ITEMS else ""


def _with_suggested(field: FormField, found: tuple[str, ...]) -> FormField:
    if not found or field.control != Control.TEXT or "\n" in field.text:
        return field
    return attrs.evolve(field, suggestions=found, is_multiline=False)


def _key_text(keys: ArgSpec, text: str) -> object:
    """Return the key of an entry as places name it."""
    if control_of(keys) is not Control.JSON:
        return text
    try:
        return parse_json(text)
    except NotJSON:
        return text


def _hint(arg: ArgSpec) -> str:
    """Return what the label does not say: whether a value may be missing, its default, and so on."""
    return _cut(", ".join(each for each in presence_phrases(arg) if each != "required"), MAX_HINT_CHARS)


def _item_label(arg: ArgSpec, number: int) -> str:
    return f"{arg.name} {number + 1}" if arg.name not in ("item", "x") else f"Item {number + 1}"


def _variant_label(arg: ArgSpec, alternative: ArgSpec) -> str:
    tag = next((key.choices for key in alternative.keys if key.name == arg.discriminator), ())
    return f"{arg.discriminator}: {', '.join(map(str, tag))}" if tag else expected_type(alternative)


def _choices(arg: ArgSpec, text: str) -> tuple[Choice, ...]:
    unset = () if text and arg.required else (Choice("", "not set", text == ""),)
    labels = [each if isinstance(each, str) and each.strip() == each != "" else json_text(each) for each in arg.choices]
    return (*unset, *(Choice(str(i), label, str(i) == text) for i, label in enumerate(labels)))


def _example(arg: ArgSpec) -> str:
    if arg.default is not UNSET and arg.default is not None and not arg.holds_secret:
        text = arg.default if isinstance(arg.default, str) else to_json(arg.default)
        return _cut(text, MAX_LABEL_CHARS)
    if arg.format:
        return FORMATS[arg.format].example
    return TYPES[arg.type].example if arg.type in NUMBER_TYPES else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
