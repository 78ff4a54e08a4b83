"""Forms for arguments: absent, null, empty and given values, lists that grow, unions, secrets and limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.datastructures import FormData, Headers, UploadFile
from tests.console.forms.html_forms import html_of, submitted

from neuroscript import ArgSpec, ArgType
from neuroscript.console.forms.arguments_form import ArgumentsForm, field_ids
from neuroscript.console.forms.controls import MAX_ITEMS
from neuroscript.console.forms.fields import fields_of
from neuroscript.console.forms.reader import TooManyFields, read_form
from neuroscript.console.forms.submission import Submission
from neuroscript.console.forms.values import fill_form

SECRET = "never-in-a-page"

TEXT = ArgSpec("a", ArgType.STRING)
OPTIONAL_TEXT = ArgSpec("a", ArgType.STRING, required=False, nullable=True)
NUMBER = ArgSpec("a", ArgType.INT, required=False)
TEXTS = ArgSpec("a", ArgType.SLICE_STRING, required=False)
POINT = ArgSpec("a", ArgType.MAP, keys=(ArgSpec("x", "int"), ArgSpec("y", "int", required=False)), required=False)
CHOICE = ArgSpec("a", ArgType.INT, choices=(1, 2), required=False)
FLAG = ArgSpec("a", ArgType.BOOL, required=False)
UNION = ArgSpec("a", ArgType.ANY, any_of=(ArgSpec("i", "int"), ArgSpec("s", "string")))
PAIR = ArgSpec("a", ArgType.SLICE, prefix_items=(ArgSpec("n", "int"), ArgSpec("s", "string")), required=False)
COUNTS = ArgSpec("a", ArgType.MAP_STRING_INT, required=False)
ANY = ArgSpec("a", ArgType.ANY, required=False)
DATA = ArgSpec("a", ArgType.BLOB, required=False)


def read(arg: ArgSpec, **texts: str) -> Any:
    """Return what is read from fields, as a dict by name."""
    names = {name.replace("__", "."): text for name, text in texts.items()}
    return read_form((arg,), Submission({f"arg.{name}": text for name, text in names.items()})).arguments


def submit(args: tuple[ArgSpec, ...], fields: dict[str, Any], **options: Any) -> ArgumentsForm:
    """Return the form after a browser has submitted fields."""
    return asyncio.run(ArgumentsForm.submitted(args, FormData(fields), **options))


@pytest.mark.parametrize(
    ("arg", "texts", "expected"),
    [
        (TEXT, {"a": "x"}, {"a": "x"}),
        (TEXT, {"a": ""}, {}),
        (TEXT, {"a": "", "a.$state": "value"}, {"a": ""}),
        (OPTIONAL_TEXT, {"a": "", "a.$state": "null"}, {"a": None}),
        (OPTIONAL_TEXT, {"a": "x", "a.$state": "null"}, {"a": None}),
        (OPTIONAL_TEXT, {"a": '"\\u0000"', "a.$state": "json"}, {"a": "\x00"}),
        (OPTIONAL_TEXT, {"a": "null"}, {"a": "null"}),
        (NUMBER, {"a": "5"}, {"a": 5}),
        (NUMBER, {"a": " 5 "}, {"a": " 5 "}),
        (NUMBER, {"a": "5.0"}, {"a": 5.0}),
        (NUMBER, {"a": "9" * 5_000}, {"a": "9" * 5_000}),
        (NUMBER, {"a": ""}, {}),
        (FLAG, {"a": "true"}, {"a": True}),
        (FLAG, {"a": "false"}, {"a": False}),
        (FLAG, {"a": ""}, {}),
        (CHOICE, {"a": "1"}, {"a": 2}),
        (CHOICE, {"a": ""}, {}),
        (TEXTS, {}, {}),
        (TEXTS, {"a.$state": "value"}, {"a": []}),
        (TEXTS, {"a.3": "x", "a.10": "", "a.7": "y"}, {"a": ["x", "y", ""]}),
        (TEXTS, {"a.0.$item": "1"}, {"a": [""]}),
        (POINT, {"a.x": ""}, {}),
        (POINT, {"a.x": "", "a.$state": "value"}, {"a": {}}),
        (POINT, {"a.x": "1"}, {"a": {"x": 1}}),
        (UNION, {"a.$value": "5"}, {"a": 5}),
        (UNION, {"a.$variant": "1", "a.$value": "5"}, {"a": "5"}),
        (PAIR, {"a.0": "", "a.1": ""}, {}),
        (PAIR, {"a.0": "1", "a.1": ""}, {"a": [1, ""]}),
        (COUNTS, {"a.$entries.0.$key": "k", "a.$entries.0.$value": "1"}, {"a": {"k": 1}}),
        (ANY, {"a": '{"b": [1, null]}'}, {"a": {"b": [1, None]}}),
        (DATA, {"a": "é"}, {"a": "é".encode()}),
        (DATA, {"a": "/w==", "a.$as": "base64"}, {"a": b"\xff"}),
        (DATA, {"a": "", "a.$state": "value"}, {"a": b""}),
    ],
)
def test_fields_are_read(arg: ArgSpec, texts: dict[str, str], expected: dict[str, Any]) -> None:
    """Absent, null, empty and given values are distinct; numbers that are not canonical stay text for coercion."""
    reading = read_form((arg,), Submission({f"arg.{name}": text for name, text in texts.items()}))

    assert (reading.arguments, reading.problems) == (expected, ())
    assert repr(reading.arguments) == repr(expected)  # 5 is not 5.0


@pytest.mark.parametrize(
    ("arg", "texts", "expected"),
    [
        (ANY, {"a": "{"}, ("a", "not JSON: line 1, column 2 is not JSON; write strings in double quotes")),
        (DATA, {"a": "?", "a.$as": "base64"}, ("a", "not Base64; choose a file, or write the bytes as text")),
        (CHOICE, {"a": "7"}, ("a", "choose one of the options")),
        (UNION, {"a.$variant": "9"}, ("a", "choose one of the types")),
        (
            COUNTS,
            {f"a.$entries.{n}.{part}": "1" for n in (0, 1) for part in ("$key", "$value")},
            ("a['key 2']", "a key that is already used"),
        ),
    ],
    ids=["json", "base64", "choice", "union", "key"],
)
def test_unreadable_fields_are_problems(arg: ArgSpec, texts: dict[str, str], expected: tuple[str, str]) -> None:
    """Each has its place, and the argument is left out."""
    reading = read_form((arg,), Submission({f"arg.{name}": text for name, text in texts.items()}))

    assert [(each.where, each.text) for each in reading.problems] == [expected]


def test_uploaded_file_is_the_value() -> None:
    """The bytes of the file count, not the text beside it."""
    from io import BytesIO

    upload = UploadFile(BytesIO(b"\x00\xff"), filename="data.bin", headers=Headers())
    form = submit((DATA,), {"arg.a.$file": upload, "arg.a": "text"})

    assert form.arguments == {"a": b"\x00\xff"}


def test_items_are_added_and_removed() -> None:
    """The values of the other items stay, whatever their indexes are."""
    fields = {"arg.a.0": "x", "arg.a.4": "y"}
    added = submit((TEXTS,), {**fields, "$do": "add:arg.a"})
    removed = submit((TEXTS,), {**fields, "$do": "remove:arg.a.0"})

    assert added.arguments == {"a": ["x", "y", ""]}
    assert removed.arguments == {"a": ["y"]}


@pytest.mark.parametrize("action", ["add:", "add:csrf", "remove:", "remove:csrf", "add:arg", "x", "add:arg.b\x00"])
def test_unknown_button_changes_no_argument(action: str) -> None:
    """A button that the form does not have has no effect on the arguments."""
    assert submit((TEXTS,), {"arg.a.0": "x", "$do": action}).arguments == {"a": ["x"]}


def test_list_has_at_most_a_fixed_number_of_items() -> None:
    """The button to add one disappears, and a longer list is written as JSON."""
    full = {f"arg.a.{index}": "x" for index in range(MAX_ITEMS)}
    form = submit((TEXTS,), {**full, "$do": "add:arg.a"})
    long = fill_form((TEXTS,), {"a": ["x"] * (MAX_ITEMS + 1)})

    assert len(form.arguments["a"]) == MAX_ITEMS
    assert 'value="add:arg.a"' not in html_of(form.fields())
    assert long.state("arg.a") == "json"
    assert len(json.loads(long.text("arg.a"))) == MAX_ITEMS + 1


def test_form_has_at_most_a_fixed_number_of_fields() -> None:
    """A form with more is refused as a whole."""
    rows = ArgSpec("a", ArgType.SLICE, items=ArgSpec("row", ArgType.SLICE, items=ArgSpec("n", "int")))
    texts = {f"arg.a.{row}.{index}": "1" for row in range(50) for index in range(50)}

    with pytest.raises(TooManyFields, match="a form may have at most 2000 fields; pass the arguments as JSON"):
        read_form((rows,), Submission(texts))


def test_deep_values_are_written_as_json() -> None:
    """Beyond a number of levels a value has one field, and is still read exactly."""
    arg = ArgSpec("leaf", ArgType.INT)
    value: Any = 7
    for _ in range(20):
        arg = ArgSpec("level", ArgType.SLICE, items=arg)
        value = [value]
    args = (ArgSpec("a", ArgType.SLICE, items=arg),)
    html = html_of(fields_of(args, fill_form(args, {"a": [value]})))

    assert html.count("<fieldset") == 8
    assert read_form(args, submitted(html)).arguments == {"a": [value]}


@pytest.mark.parametrize(
    "text",
    [
        "\n\n leading",
        "tab\there",
        "trailing \n",
        "\r\n windows",
        "\x00\x1b[31m",
        "\u202egnp",
        "\u00a0",
        "'\"<>&",
        "</textarea>",
    ],
    ids=ascii,
)
def test_any_text_survives_the_browser(text: str) -> None:
    """Characters that a browser or the page would change are shown as JSON."""
    submission = fill_form((TEXT,), {"a": text})
    html = html_of(fields_of((TEXT,), submission))

    assert read_form((TEXT,), submitted(html)).arguments == {"a": text}


def test_text_with_invisible_characters_is_shown_as_json_after_an_error() -> None:
    """What the user has pasted is not changed when the form is shown again."""
    pasted = Submission({"arg.a": "a\u200bb"})
    html = html_of(fields_of((TEXT,), pasted))

    assert "a\\u200bb" in html
    assert read_form((TEXT,), submitted(html)).arguments == {"a": "a\u200bb"}


PASSWORD = ArgSpec("password", ArgType.STRING, secret=True)
LOGIN = ArgSpec("login", ArgType.MAP, keys=(ArgSpec("user", "string"), PASSWORD))
KEYS = ArgSpec("keys", ArgType.SLICE_STRING, secret=True, required=False)
ACCOUNT = ArgSpec("account", ArgType.MAP, keys=LOGIN.keys, required=False)
LOGINS = ArgSpec("logins", ArgType.MAP, value_spec=LOGIN, required=False)
USERS = ArgSpec("users", ArgType.SLICE_MAP, keys=LOGIN.keys, required=False)
CODE = ArgSpec("code", ArgType.ANY, any_of=(ArgSpec("n", "int"), LOGIN), required=False)
SECRETS = (PASSWORD, KEYS, ACCOUNT, LOGINS, USERS, CODE)
ADA = {"user": "ada", "password": SECRET}
VALUES = {
    "password": SECRET,
    "keys": [SECRET],
    "account": ADA,
    "logins": {"mail": ADA},
    "users": [ADA],
    "code": ADA,
}


def test_secrets_are_never_filled_in() -> None:
    """Arguments with secrets, at any depth, leave no trace in fields or JSON."""
    form = ArgumentsForm.filled(SECRETS, VALUES)

    assert SECRET not in html_of(form.fields())
    assert SECRET not in form.json
    assert SECRET not in repr(form)
    assert form.arguments.get("account") == {"user": "ada"}


def test_secrets_are_read_and_never_shown() -> None:
    """The arguments have them; what is shown has placeholders that stand for the fields."""
    fields = {
        "arg.password": SECRET,
        "arg.keys": json.dumps([SECRET]),
        "arg.account.user": "ada",
        "arg.account.password": SECRET,
        "arg.logins.$entries.0.$key": "mail",
        "arg.logins.$entries.0.$value.user": "ada",
        "arg.logins.$entries.0.$value.password": SECRET,
        "arg.users.0.user": "ada",
        "arg.users.0.password": SECRET,
        "arg.code.$variant": "1",
        "arg.code.$value.user": "ada",
        "arg.code.$value.password": SECRET,
    }
    form = submit(SECRETS, fields)
    again = submit(SECRETS, {**fields, "$edited": "json", "$json": form.json})

    assert form.arguments == VALUES
    assert SECRET not in form.json
    assert SECRET not in html_of(form.fields())
    assert again.arguments == VALUES
    assert SECRET not in again.json


@pytest.mark.parametrize("cut", [0, 1], ids=["valid", "broken"])
def test_secrets_in_json_are_not_sent_back(cut: int) -> None:
    """A user may write a secret into the JSON; the page that follows does not contain it, valid or not."""
    text = json.dumps(VALUES)
    form = submit(SECRETS, {"$edited": "json", "$json": text[: len(text) - cut]})

    assert SECRET not in form.json
    assert SECRET not in html_of(form.fields())
    assert SECRET not in repr(form.problems)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pasword": SECRET},
        {"Password": [SECRET]},
        {"password": {"$secret": SECRET}},
        {"account": {"user": "ada", "pasword": SECRET}},
        {"logins": {"mail": {"pasword": {"x": SECRET}}}},
    ],
    ids=str,
)
def test_secrets_under_misspelled_names_are_not_sent_back(arguments: dict[str, Any]) -> None:
    """A name that the tool does not have can be that of a secret with a mistake in it."""
    form = submit(SECRETS, {"$edited": "json", "$json": json.dumps(arguments)})

    assert form.arguments == arguments
    assert SECRET not in form.json
    assert SECRET not in html_of(form.fields())


def test_secrets_that_have_no_field_are_not_sent_back() -> None:
    """The form for the changes of an approval leaves secret arguments out, but the JSON may name them."""
    text = json.dumps({"a": 1, "password": SECRET})
    form = submit((TEXT,), {"$edited": "json", "$json": text}, has_secrets=True)

    assert form.arguments == {"a": 1, "password": SECRET}
    assert SECRET not in form.json
    assert SECRET not in html_of(form.fields())


def test_placeholder_stands_for_a_secret_only_in_a_secret_argument() -> None:
    """In any other argument it is what the user has written, so no preview and no tool shows the secret."""
    args = (PASSWORD, ArgSpec("text", ArgType.ANY), ArgSpec("login", ArgType.MAP, keys=(TEXT, PASSWORD)))
    stands = {"$secret": "arg.password"}
    text = json.dumps({"password": stands, "text": [stands], "login": {"a": stands, "password": stands}})
    form = submit(args, {"arg.password": SECRET, "$edited": "json", "$json": text})

    expected = {"password": SECRET, "text": [stands], "login": {"a": stands, "password": SECRET}}
    assert expected == form.arguments


@pytest.mark.parametrize("depth", [150, 900])
def test_deep_json_is_a_problem(depth: int) -> None:
    """The parser reads more levels than a page can show."""
    deep = "[" * depth + "]" * depth
    whole = submit((ANY,), {"$edited": "json", "$json": f'{{"a": {deep}}}'})
    field = submit((ANY,), {"arg.a": deep})

    assert [each.text for each in (*whole.problems, *field.problems)] == [
        "not JSON: the JSON text nests too deeply",
        "not JSON: the JSON text nests too deeply; write strings in double quotes",
    ]


@pytest.mark.parametrize("action", ["", "add:arg.a{}", "remove:arg.a{}.0"])
def test_long_names_of_fields_are_left_out(action: str) -> None:
    """Each index in a name is an item of a list, so the lists of a name of 4 MB would need terabytes."""
    steps = ".0" * 1_000_000
    form = submit((TEXTS,), {f"arg.a{steps}": "x", "$do": action.format(steps)})

    assert form.arguments == {}
    assert form.submission.texts == {}


def test_json_that_is_no_object_is_a_problem() -> None:
    """The text stays as it was written."""
    form = submit((TEXT,), {"$edited": "json", "$json": "[1]"})

    assert [(each.where, each.text) for each in form.problems] == [("", "not a JSON object with the arguments by name")]
    assert form.json == "[1]"


def test_variadic_argument_is_a_list() -> None:
    """Each trailing value has a field."""
    args = (TEXT, ArgSpec("rest", ArgType.INT))
    form = submit(args, {"arg.a": "x", "arg.rest.0": "1", "arg.rest.1": "2"}, variadic=True)

    assert form.arguments == {"a": "x", "rest": [1, 2]}
    assert 'id="f-arg.rest.1"' in html_of(form.fields())


def test_ids_are_found_by_the_places_of_problems() -> None:
    """Problems of coercion lead to the control of their field."""
    form = ArgumentsForm.filled((POINT,), {"a": {"x": 1}})
    ids = field_ids(form.fields(prefix="p-"))

    assert ids["a['x']"] == "p-arg.a.x"
    assert ids["a['x']"] != ids["a"]


def test_suggestions_are_offered_for_text() -> None:
    """They are a list that the user may ignore."""
    html = html_of(fields_of((TEXT,), Submission(), suggest=lambda name: ["a.txt", "<b>.txt"] if name == "a" else []))

    assert '<option value="a.txt"></option><option value="&lt;b&gt;.txt"></option>' in html


def test_texts_of_the_spec_are_escaped() -> None:
    """Names, descriptions, choices and defaults come from tools of others."""
    hostile = "<img/src=x/onerror=alert(1)>"
    choices = ArgSpec("c", ArgType.STRING, choices=(hostile, "b"), description=hostile)
    default = ArgSpec("<img/src=x>", ArgType.STRING, default=hostile)
    html = html_of(fields_of((choices, default), Submission({"arg.c": hostile})))

    assert "<img" not in html
