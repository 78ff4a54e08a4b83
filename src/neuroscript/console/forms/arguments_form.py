"""A form for arguments: fields, and the same arguments as JSON beside them; what was edited last counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from neuroscript.console.forms.fields import Suggestions, fields_of
from neuroscript.console.forms.form_field import FormField
from neuroscript.console.forms.json_text import mask_arguments, read_arguments, write_arguments
from neuroscript.console.forms.reader import FormProblem, read_form
from neuroscript.console.forms.submission import Submission
from neuroscript.console.forms.values import fill_form
from neuroscript.spec.tool_spec import ArgSpec

if TYPE_CHECKING:
    from starlette.datastructures import FormData

ACTION: Final = "$do"
"""The name of all buttons that submit the form."""

JSON: Final = "$json"
"""The name of the field with the arguments as JSON."""

EDITED: Final = "$edited"
"""The name of the field that says what was edited last: ``form`` or ``json``."""


@attrs.frozen
class ArgumentsForm:
    """A form for the arguments of a call, the inputs of a plan or the changes of an approval.

    Attributes:
        args: The specs of the arguments.
        variadic: Whether the last argument takes a list of values.
        submission: The fields.
        arguments: The arguments as a caller would pass them by name, without fields that cannot be read.
        shown: The same with ``{"$secret": NAME}`` in place of each secret.
        json: The arguments as JSON text, without secrets.
        edited: What counts: ``form`` or ``json``.
        problems: What cannot be read.
    """

    args: tuple[ArgSpec, ...]
    submission: Submission = attrs.field(repr=False)
    arguments: dict[str, Any] = attrs.field(repr=False)
    shown: dict[str, Any] = attrs.field(repr=False)
    json: str = attrs.field(repr=False)
    edited: str = "form"
    problems: tuple[FormProblem, ...] = ()
    variadic: bool = False

    @classmethod
    def filled(cls, args: Sequence[ArgSpec], arguments: Mapping[str, Any], *, variadic: bool = False) -> Self:
        """Return the form with given arguments; secrets are left out."""
        submission = fill_form(args, mask_arguments(args, arguments, variadic=variadic), variadic=variadic)
        return cls._of_fields(tuple(args), submission, variadic)

    @classmethod
    async def submitted(
        cls, args: Sequence[ArgSpec], form: FormData, *, variadic: bool = False, has_secrets: bool = False
    ) -> Self:
        """Return the form after a browser has submitted it, with the effect of the button that was pressed.

        Args:
            has_secrets: Whether the tool has secret arguments besides *args*.

        Raises:
            TooManyFields: The form is too large.
        """
        args = tuple(args)
        submission = await Submission.of_form(form)
        action, text = form.get(ACTION, ""), form.get(JSON, "")
        if form.get(EDITED) == "json" and isinstance(text, str):
            return cls._of_json(args, submission, text.replace("\r\n", "\n"), variadic, has_secrets)
        if isinstance(action, str):
            submission = submission.changed_by(action)
        return cls._of_fields(args, submission, variadic)

    @classmethod
    def _of_fields(cls, args: tuple[ArgSpec, ...], submission: Submission, variadic: bool) -> Self:
        reading = read_form(args, submission, variadic=variadic)
        text = write_arguments(reading.shown)
        return cls(args, submission, reading.arguments, reading.shown, text, "form", reading.problems, variadic)

    @classmethod
    def _of_json(
        cls, args: tuple[ArgSpec, ...], submission: Submission, text: str, variadic: bool, has_secrets: bool
    ) -> Self:
        secrets = read_form(args, submission, variadic=variadic).secrets
        has_secrets = has_secrets or any(arg.holds_secret for arg in args)
        parsed = read_arguments(args, text, secrets, variadic=variadic, hides_unknown=has_secrets)
        if parsed.problems:
            shown_text = "" if has_secrets else text
            return cls(args, submission, {}, {}, shown_text, "json", parsed.problems, variadic)
        fields = fill_form(args, parsed.shown, variadic=variadic)
        shown_text = write_arguments(parsed.shown) if has_secrets else text
        return cls(args, fields, parsed.arguments, parsed.shown, shown_text, "json", (), variadic)

    def fields(
        self,
        *,
        problems: Mapping[str, Sequence[str]] | None = None,
        notes: Mapping[str, str] | None = None,
        suggest: Suggestions | None = None,
        prefix: str = "f-",
    ) -> tuple[FormField, ...]:
        """Return the fields as templates render them, see `neuroscript.console.forms.fields.fields_of`."""
        found = {each.where: [each.text] for each in self.problems if each.where}
        for where, texts in (problems or {}).items():
            found.setdefault(where, []).extend(texts)
        more: Any = {"notes": notes, "suggest": suggest, "prefix": prefix}
        return fields_of(self.args, self.submission, variadic=self.variadic, problems=found, **more)


def field_ids(fields: Sequence[FormField]) -> dict[str, str]:
    """Return the id of the control for each place in the arguments, for links to it."""
    found: dict[str, str] = {}
    for field in fields:
        found[field.where] = field.id
        found.update(field_ids(field.children))
    return found
