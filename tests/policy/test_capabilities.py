"""Needs, grants and templates: what covers what."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Capability,
    Grant,
    SpecError,
    ToolImplementation,
    ToolPolicy,
    ToolSpec,
    policy_from_data,
    policy_to_data,
)
from neuroscript.policy.capabilities import first_uncovered, normal, split_need
from neuroscript.policy.scopes import literal
from neuroscript.policy.templates import Template

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "authority.md").read_text()
COVERED = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (yes|no) \|", PAGE, re.MULTILINE)
FILLED = re.findall(r"^\| `([^`]+)` \| `(\w+)` \| `([^`]+)` \| (.*)\|$", PAGE, re.MULTILINE)
MATCHED = re.findall(r"^\| `([^`]+)` \| ([^|]*)\| ([^|]*)\|$", PAGE, re.MULTILINE)


def spans(cell: str) -> list[str]:
    """Return the strings between backticks."""
    return re.findall("`([^`]+)`", cell)


def covers(grant: str, need: str) -> bool:
    """Return whether a grant covers a need, both as strings."""
    return Grant.parse(grant).covers(Capability.parse(need))


def test_the_tables_of_the_page_are_complete() -> None:
    """The number of rows is fixed, so that a formatting error loses none."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]

    assert len(rows) == len(COVERED) + len(FILLED) + len(MATCHED)
    assert min(len(COVERED), len(FILLED), len(MATCHED)) > 8


@pytest.mark.parametrize(("need", "grant", "expected"), COVERED)
def test_each_row_about_grants_is_true(need: str, grant: str, expected: str) -> None:
    """In the tables of the page."""
    assert (expected == "yes") is covers(grant, need)


@pytest.mark.parametrize(("template", "kind", "value", "needs"), FILLED)
def test_each_row_about_templates_is_true(template: str, kind: str, value: str, needs: str) -> None:
    """The text of a filled need parses to the same need."""
    filled = Template.parse(template, {"x": ArgType(kind)}).fill([eval(value)])

    assert spans(needs) == [str(need) for need in filled]
    assert [Capability.parse(text) for text in spans(needs)] == list(filled)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Capability.parse("fs"), "capability: fs is not a capability; write resource:verb[,verb][:scope[,scope]], "
         "such as fs:read:data/a.txt"),
        (lambda: Capability.parse("fs:"), "capability: fs: is not a capability; write resource:verb[,verb][:scope[,scope]], "
         "such as fs:read:data/a.txt"),
        (lambda: Capability.parse("fs:re ad"), "capability: fs:re ad is not a capability; write resource:verb[,verb][:scope["
         ",scope]], such as fs:read:data/a.txt"),
        (lambda: Capability.parse("fs:*"), "capability: * is not a valid resource or verb; write resource:verb[,verb][:scope[,scope]], such as "
         "fs:read:data/a.txt"),
        (lambda: Capability.parse("fs:read:"), r"capability: : a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"),
        (lambda: Capability.parse("fs:read:a,,b"), r"capability: a,,b: a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"),
        (lambda: Capability.parse("fs:read:a\\"), r"capability: a\: a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"),
        (lambda: Capability.parse("fs:read:{path}"), r"capability: {path}: a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"),
        (lambda: Capability.parse(5), "capability: text must be a string, not int; write resource:verb[,verb][:scope[,scope]], such "
         "as fs:read:data/a.txt"),
        (lambda: Capability("fs", "read"), "capability: verbs must be a list or tuple of strings, not str; write "
         "resource:verb[,verb][:scope[,scope]], such as fs:read:data/a.txt"),
        (lambda: Capability("fs", ()), "capability: a capability needs at least one verb; write resource:verb[,verb][:scope[,scope]], such "
         "as fs:read:data/a.txt"),
        (lambda: Capability("f s", ("read", "5"), ("a,b",)), "capability: f s is not a valid resource or verb; write resource:verb[,verb][:scope"
         "[,scope]], such as fs:read:data/a.txt; 5 is not a valid resource or verb; write resource:verb[,verb][:scope[,scope]], such as "
         r"fs:read:data/a.txt; a,b: a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"),
        (lambda: Grant.parse("fs:read"), "grant: a grant needs a scope; write fs:read:* for the whole resource"),
        (lambda: Grant.parse("fs:read:../a"), "grant: ../a is not a valid scope for fs: the path leads out of the sandbox"),
        (lambda: Grant.parse("fs:read:a/*/../b"), "grant: a/*/../b is not a valid scope for fs: '..' after a glob is not supported"),
        (lambda: Grant.parse("fs:read:[ab]"), r"grant: [ab] is not a valid scope for fs: character classes are not supported; write \[ "
         "for a bracket"),
        (lambda: Grant.parse("*:read:[ab]"), r"grant: [ab] is not a valid scope for *: character classes are not supported; write \[ "
         "for a bracket"),
        (lambda: Grant.parse("net:read:a*.com"), "grant: a*.com is not a valid scope for net: * in a host matches whole labels; "
         "write *.example.com"),
        (lambda: Grant.parse("net:read:bücher.de"), "grant: bücher.de is not a valid scope for net: expected a host of ASCII letters, digits, - and _, or an IPv6 address in brackets"),
        (lambda: Grant.parse("net:read:a.com:99999"), "grant: a.com:99999 is not a valid scope for net: a port is at most 65535"),
        (lambda: Grant.parse("net:read:https://a.com"), "grant: https://a.com is not a valid scope for net: expected host or host:port, such as api.example.com:443, *.example.com or [::1]:80"),
        (lambda: Grant.parse("env:read:\ud800"), "grant: \\ud800 is not a valid scope for env: a scope must be valid Unicode, without "
         "lone surrogates"),
    ],
)  # fmt: skip
def test_an_invalid_capability_is_refused_with_advice(make: Any, text: str) -> None:
    """When it is created."""
    with pytest.raises(SpecError) as caught:
        make()

    assert text == str(caught.value)


@pytest.mark.parametrize(
    ("text", "types", "fault"),
    [
        ("fs:read:{pth}", {"path": ArgType.STRING}, "fs:read:{pth}: {pth} is not an argument of the tool"),
        ("fs:read:{}", {"path": ArgType.STRING}, "fs:read:{}: {} is not an argument of the tool"),
        ("net:read:{url.port}", {"url": ArgType.STRING}, "net:read:{url.port}: {url.port} has an unknown attribute; only .host is supported"),
        ("net:read:{url.host}:80", {"url": ArgType.STRING}, "net:read:{url.host}:80: {url.host} is the host of a URL, so it must be a string and fill the whole scope"),
        ("net:read:{url.host}", {"url": ArgType.INT}, "net:read:{url.host}: {url.host} is the host of a URL, so it must be a string and fill the whole scope"),
        ("fs:read:{a}", {"a": ArgType.MAP}, "fs:read:{a}: {a} is map; only strings, integers, booleans and lists of them can fill a scope"),
        ("fs:read:{a}", {"a": ArgType.BLOB}, "fs:read:{a}: {a} is blob; only strings, integers, booleans and lists of them can fill a scope"),
        ("fs:read:{a}/{b}", {"a": ArgType.SLICE_STRING, "b": ArgType.SLICE_STRING}, "fs:read:{a}/{b}: {a}/{b} can contain at most one list"),
        ("fs:read:{a", {"a": ArgType.STRING}, r"capability: {a: a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"),
        ("fs:read:../a,{b}", {"a": ArgType.STRING}, "fs:read:../a,{b}: ../a is not a valid scope for fs: the path leads out of the "
         "sandbox; {b} is not an argument of the tool"),
    ],
)  # fmt: skip
def test_an_invalid_template_is_refused_when_it_is_created(text: str, types: dict[str, ArgType], fault: str) -> None:
    """So no call can fail because of it."""
    with pytest.raises(SpecError) as caught:
        Template.parse(text, types)

    assert fault == str(caught.value)


def test_only_strings_integers_booleans_and_lists_of_them_fill_a_scope() -> None:
    """Templates with arguments of other types are refused."""
    fitting = set()
    for kind in ArgType:
        try:
            Template.parse("x:use:{a}", {"a": kind})
        except SpecError:
            continue
        fitting.add(kind.value)

    assert fitting == {"string", "int", "bool", "handle", "nodeid", "slice_string", "slice_int", "slice_bool"}


def test_a_tool_must_have_the_arguments_of_its_needs() -> None:
    """This is checked for the tool, because the policy does not know the arguments."""
    spec = ToolSpec("read", "fs", (ArgSpec("path", ArgType.STRING),))
    policy = ToolPolicy(capabilities=("fs:read:{pth}",))

    with pytest.raises(SpecError) as caught:
        ToolImplementation(spec, lambda rt, path: None, policy)

    assert str(caught.value) == "fs.read: policy: fs:read:{pth}: {pth} is not an argument of the tool"


def test_needs_may_be_strings_or_parsed_and_are_stored_as_strings() -> None:
    """Resource and verb in lower case, scopes unchanged, no duplicates; they survive plain data."""
    policy = ToolPolicy(
        capabilities=("FS:Read:{Path}", "fs:read:{Path}", Capability.parse(r"env:read:A\,B,c"), "net:read:{url.host}")
    )

    assert policy.capabilities == ("fs:read:{Path}", r"env:read:A\,B,c", "net:read:{url.host}")
    assert policy_from_data(policy_to_data(policy)) == policy
    assert policy_to_data(policy)["requiredCaps"][1]["Scopes"] == [r"A\,B", "c"]


def test_each_variadic_value_fills_one_need() -> None:
    """The last argument of a variadic tool has any number of values."""
    types = {"mode": ArgType.STRING, "paths": ArgType.STRING}
    template = Template.parse("fs:read:{mode}/{paths}", types, variadic=True)

    assert [str(each) for each in template.fill(("m", "a", "b"))] == ["fs:read:m/a", "fs:read:m/b"]
    assert template.fill(("m",)) == ()
    with pytest.raises(SpecError):
        Template.parse("fs:read:{paths}", {"paths": ArgType.SLICE_STRING}, variadic=True)


def test_an_imported_argument_name_may_be_unusual() -> None:
    """With dots, colons and commas; the whole name takes precedence over an attribute."""
    types = {"a.host": ArgType.STRING, "b:c,d": ArgType.STRING}

    filled = Template.parse("x:use:{a.host},{b:c,d}", types).fill(["u", "v"])

    assert [str(need) for need in filled] == ["x:use:u", "x:use:v"]


def test_none_in_a_part_of_a_scope_needs_the_whole_resource() -> None:
    """A missing part limits nothing."""
    template = Template.parse("net:read:{host}:{port}", {"host": ArgType.STRING, "port": ArgType.INT})

    assert [str(need) for need in template.fill(["a.com", None])] == ["net:read"]
    assert [str(need) for need in template.fill(["a.com", 443])] == ["net:read:a.com:443"]


@pytest.mark.parametrize(
    ("host", "port", "covered"),
    [
        ("good.com", 443, True),
        ("GOOD.com.", 443, True),
        ("good.com", 80, False),
        ("good.com:443@evil.com", 443, False),
        ("good.com:443", 443, False),
        ("evil.com/good.com", 443, False),
        ("good.com\\", 443, False),
        ("g\u043eod.com", 443, False),
        ("\uff47ood.com", 443, False),
        ("*", 443, False),
        ("::1", 443, False),
        ("", 443, False),
    ],
)
def test_a_host_argument_is_never_syntax(host: str, port: int, covered: bool) -> None:
    """For any value, the port stays the port, and the host is one host."""
    template = Template.parse("net:read:{host}:{port}", {"host": ArgType.STRING, "port": ArgType.INT})

    missing = first_uncovered(template.fill([host, port]), [Grant.parse("net:read:good.com:443")])

    assert covered is (missing is None)


def test_a_letter_that_only_lowers_to_ascii_is_not_ascii() -> None:
    """The Kelvin sign becomes k in lower case, and clients differ in whether they accept it."""
    (need,) = Template.parse("net:read:{host}", {"host": ArgType.STRING}).fill(["\u212a.com"])

    assert first_uncovered([need], [Grant.parse("net:read:k.com"), Grant.parse("*:*:*")]) == need


def test_an_ipv6_argument_needs_no_brackets() -> None:
    """A client accepts it unchanged; the scope has brackets to separate the port."""
    template = Template.parse("net:read:{host}:{port}", {"host": ArgType.STRING, "port": ArgType.INT})
    grants = [Grant.parse("net:read:[::1]:443")]

    for spelling in ("::1", "[::1]", "0:0:0:0:0:0:0:1"):
        assert first_uncovered(template.fill([spelling, 443]), grants) is None
    assert first_uncovered(template.fill(["::1", 80]), grants) is not None
    assert first_uncovered(template.fill(["::", 1443]), grants) is not None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://good.com@evil.com/", "evil.com:80"),
        ("http://good.com:443@evil.com/", "evil.com:80"),
        ("HTTPS://Example.COM", "example.com:443"),
        ("https://example.com./", "example.com:443"),
        ("https://example.com:/", "example.com:443"),
        ("https://example.com:0080?a@b", "example.com:80"),
        ("https://example.com/@evil.com", "example.com:443"),
        ("https://example.com#@evil.com", "example.com:443"),
        ("ws://a_b.c", "a_b.c:80"),
        ("wss://a.c", "a.c:443"),
        ("ftp://a.c", "a.c:21"),
        ("ssh://a.c:22", "a.c:22"),
        ("http://[2001:DB8::1]:8080/", "[2001:db8::1]:8080"),
        ("http://127.0.0.1", "127.0.0.1:80"),
        ("http://2130706433", "2130706433:80"),
    ],
)
def test_a_url_fills_in_as_the_place_that_a_client_connects_to(url: str, expected: str) -> None:
    """Host and port, in their normal form."""
    template = Template.parse("net:read:{url.host}", {"url": ArgType.STRING})

    assert [f"net:read:{expected}"] == [str(need) for need in template.fill([url])]


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "//example.com", "http:example.com", "http:/example.com", "http://", "http:///x", "FILE:///etc/x",
     "ssh://a.c", "http://a@b@c", "http://good.com\\@evil.com", "http://good.com\\.evil.com", "http://a.com:99999",
     "http://a.com:-1", "http://a.com:8 0", "http://a.com\n.evil.com", "http://a.com\t", " http://a.com", "http://a b",
     "http://%65vil.com", "http://a..com", "http://.com", "http://b\u00fccher.de", "http://a.com:\u0661", "http://[::1", "http://::1",
     "http://[::1%25eth0]", "http://[a.com]", "http://[v1.x]", "http://a.com\u3002evil.com", "http://a.com\x00",
     "http://a.com/\x00", "http://\x00@a.com", "http://a.com/\u2028", "http://\u212a.com", "http\u017f://a.com:80"],
)  # fmt: skip
def test_a_url_that_clients_could_read_differently_is_refused(url: str) -> None:
    """The call is denied; the error names the argument and contains no value."""
    template = Template.parse("net:read:{urls.host}", {"urls": ArgType.SLICE_STRING})

    with pytest.raises(ArgumentError) as caught:
        template.fill([["http://a.com", url]])

    text = "urls[1]: expected a URL with an ASCII host and an explicit or well-known port, got str"
    assert (text, "arg.url", "model") == (str(caught.value), caught.value.code, caught.value.retry)


@pytest.mark.parametrize(
    "path",
    ["../secret", "data/../../secret", "data/../secret", "/data/a.txt", "/etc/passwd", "..", "data/..", "~/a", "data\\..\\x",
     "data/\x00", "%2e%2e/secret", "data%2f..%2fsecret", "DATA/a.txt", "Data", "*", "**", "data*", "database/a", "data\u2044a",
     "\uff44ata/a", ""],
)  # fmt: skip
def test_a_path_argument_cannot_leave_its_grant(path: str) -> None:
    """It is compared in the form in which the sandbox opens it, and its characters are never globs."""
    filled = Template.parse("fs:read:{path}", {"path": ArgType.STRING}).fill([path])

    assert first_uncovered(filled, [Grant.parse("fs:read:data/**")]) == filled[0]


def test_a_path_outside_the_sandbox_is_covered_by_no_grant() -> None:
    """Not even by one for the whole resource; and it cannot be granted."""
    (need,) = Template.parse("fs:read:{path}", {"path": ArgType.STRING}).fill(["../a"])

    assert not Grant.parse("*:*:*").covers(need)
    with pytest.raises(SpecError) as caught:
        Grant.of(need)
    assert str(caught.value) == "grant: the need has a scope that no grant can cover"


def test_literal_parts_around_a_glob_must_be_valid_paths() -> None:
    """A leading slash is removed, and impossible names are refused."""
    (need,) = Template.parse("fs:read:{path}*", {"path": ArgType.STRING}).fill(["/"])

    assert not Grant.parse("*:*:*").covers(need)
    with pytest.raises(SpecError):
        Grant.parse(r"fs:read:*/a\\b")


def test_a_need_with_two_verbs_and_two_scopes_is_four_needs() -> None:
    """Each with one verb and one scope."""
    texts = [str(each) for each in split_need(Capability.parse("fs:read,write:a,b"))]

    assert texts == ["fs:read:a", "fs:write:a", "fs:read:b", "fs:write:b"]
    assert split_need(Capability.parse("fs:read,write")) == (Capability("fs", ("read",)), Capability("fs", ("write",)))


def test_each_need_must_be_covered_by_one_grant() -> None:
    """Two grants with one verb each cover two needs, but not one need with both verbs."""
    need = Capability.parse("fs:read,write:a")
    grants = [Grant.parse("fs:read:a"), Grant.parse("fs:write:a")]

    assert first_uncovered([need], grants) is None
    assert not any(grant.covers(need) for grant in grants)


def test_matching_takes_linear_time() -> None:
    """A pattern with many globs is matched quickly against a worst-case string."""
    many = "*a" * 30 + "b"

    assert not covers(f"env:read:{many}", f"env:read:{'a' * 5_000}")
    assert not covers(f"fs:read:{many}", f"fs:read:{'a' * 200}")
    assert not covers(f"fs:read:{'**/a/' * 30}b", f"fs:read:{'a/' * 250}a")
    assert not covers(f"net:read:{'*.a.' * 20}b", f"net:read:{'a.' * 120}a")
    assert not covers(f"net:read:{'*.' * 40}b", f"net:read:{'a.' * 120}a")


# Properties

words = st.sampled_from(["fs", "net", "env", "model", "x"])
texts = st.text(
    st.sampled_from("ab.*:,?[]{}\\/ é~-1") | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8
)
GLOBS = ["a", "b", "*", "**", "?", "a*", "*b", "a?", "*a*", "a*b", "??", "ab", "***"]
fs_globs = st.lists(st.sampled_from(GLOBS), min_size=1, max_size=4).map("/".join).filter(lambda glob: glob != "*")
HOSTS = ["*", "a", "b", "1", "*", "2"]
net_globs = st.builds(
    lambda labels, port: ".".join(labels) + port,
    st.lists(st.sampled_from(HOSTS), min_size=1, max_size=4),
    st.sampled_from(["", ":1", ":2", ":*"]),
).filter(lambda glob: glob != "*")
text_globs = st.text("abA*?", min_size=1, max_size=6).filter(lambda glob: glob != "*")

NAMES = ["a", "b", "aa", "ab", "ba", "c", "aab"]
PATHS = ["."] + ["/".join(path) for depth in (1, 2, 3) for path in itertools.product(NAMES[:5], repeat=depth)]
PLACES = [
    ".".join(labels) + port
    for depth in (1, 2, 3, 4)
    for labels in itertools.product("abc12"[:4] if depth > 2 else "abc12", repeat=depth)
    for port in (":1", ":3")
]
NAMED = ["".join(each) for length in range(6) for each in itertools.product("ab", repeat=length) if each]


def path_means(glob: str, path: str) -> bool:
    """Return whether a glob matches a path, by brute force and without the project's code."""

    def matches(glob: list[str], path: list[str]) -> bool:
        if not glob:
            return not path
        if glob[0] == "**":
            return matches(glob[1:], path) or bool(path and matches(glob, path[1:]))
        return bool(path and segment(glob[0], path[0]) and matches(glob[1:], path[1:]))

    def segment(glob: str, text: str) -> bool:
        return re.fullmatch(re.sub(r"\*+", "*", glob).replace("*", ".*").replace("?", "."), text) is not None

    return matches(glob.split("/"), [] if path == "." else path.split("/"))


def place_means(glob: str, place: str) -> bool:
    """The same for a host and a port."""
    wanted, _, port = glob.partition(":")
    host, _, given_port = place.partition(":")
    labels = wanted.split(".")
    numeric = any(label != "*" for label in labels) and all(label.isdigit() for label in labels if label != "*")

    def matches(glob: list[str], host: list[str], first: bool) -> bool:
        if not glob:
            return not host
        if glob[0] != "*":
            return bool(host) and host[0] == glob[0] and matches(glob[1:], host[1:], False)
        least = 0 if first and not numeric and len(glob) > 1 else 1
        taken = range(least, len(host) + 1)
        return any(
            matches(glob[1:], host[count:], False)
            for count in taken
            if not numeric or all(label.isdigit() for label in host[:count])
        )

    return port in ("", "*", given_port) and matches(labels, host.split("."), True)


def name_means(glob: str, text: str) -> bool:
    """Return whether a glob matches any other scope."""
    return re.fullmatch(glob.lower().replace("*", ".*").replace("?", "."), text) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resource", "globs", "means", "universe"),
    [
        ("fs", fs_globs, path_means, PATHS),
        ("net", net_globs, place_means, PLACES),
        ("env", text_globs, name_means, NAMED),
    ],
    ids=["fs", "net", "env"],
)
def test_a_grant_covers_a_glob_only_if_it_covers_all_matches(
    resource: str, globs: Any, means: Any, universe: list[str]
) -> None:
    """Compared with brute force: sound for globs of needs, and exact for literal scopes."""

    @given(globs, globs)
    def holds(need: str, grant: str) -> None:
        granted = Grant.parse(f"{resource}:read:{grant}")
        covered = granted.covers(Capability.parse(f"{resource}:read:{need}"))
        for each in universe:
            by_grant = means(grant, each)
            assert by_grant is granted.covers(Capability(resource, ("read",), (each,)))
            assert by_grant or not covered or not means(need, each)

    holds()


@given(st.sampled_from(["fs", "net", "env"]), st.data())
def test_cover_is_reflexive_and_transitive(resource: str, data: st.DataObject) -> None:
    """A need covers itself as a grant, and a grant covers everything that its covered grants cover."""
    globs = {"fs": fs_globs, "net": net_globs, "env": text_globs}[resource]
    first, second, third = (Capability(resource, ("read",), (data.draw(globs),)) for _ in range(3))

    assert Grant.of(first).covers(first)
    if Grant.of(first).covers(second) and Grant.of(second).covers(third):
        assert Grant.of(first).covers(third)


@given(words, texts)
def test_a_filled_value_is_literal_and_can_be_parsed(resource: str, value: str) -> None:
    """Its text parses to the same need, for any value."""
    (need,) = Template.parse(f"{resource}:read:{{x}}", {"x": ArgType.STRING}).fill([value])

    assert Capability.parse(str(need)) == need


@given(st.sampled_from(["fs", "env", "x"]), texts, texts)
def test_a_filled_value_never_acts_as_a_glob(resource: str, value: str, other: str) -> None:
    """As a grant it covers only itself, an equal path, or the same text in another case."""
    template = Template.parse(f"{resource}:read:{{x}}", {"x": ArgType.STRING})
    (need,), (another,) = template.fill([value]), template.fill([other])
    assume(Grant.parse("*:*:*").covers(need))

    assert Grant.of(need).covers(need)
    if Grant.of(need).covers(another):
        parts = [[part for part in each.lower().split("/") if part not in ("", ".")] for each in (value, other)]
        assert value.lower() == other.lower() or parts[0] == parts[1] or ".." in (*parts[0], *parts[1])


@given(texts, texts)
def test_globs_of_a_template_stay_globs(value: str, name: str) -> None:
    """With a literal value between them: the need then covers exactly the files below that directory."""
    below = Template.parse("fs:read:top/{x}/**", {"x": ArgType.STRING}).fill([value])[0]
    inside = Capability("fs", ("read",), (f"top/{literal(value)}/a",))
    beside = Capability("fs", ("read",), (f"top/{literal(name)}/a",))
    assume(Grant.parse("*:*:*").covers(below) and not {"..", ".", ""} & {*value.split("/"), *name.split("/")})

    assert Grant.of(below).covers(inside)
    assert Grant.of(below).covers(beside) is (f"{name}/a/").startswith(f"{value}/")


@given(st.lists(st.builds("{}:{}:{}".format, words, st.sampled_from(["read", "use", "*"]), texts.map(literal)), max_size=3),
       st.lists(st.builds("{}:{}:{}".format, words, st.sampled_from(["read", "use"]), texts.map(literal)), max_size=3))  # fmt: skip
def test_another_grant_never_covers_less(grants: list[str], needs: list[str]) -> None:
    """Everything that was covered is still covered."""
    made = []
    for grant in grants:
        try:
            made.append(Grant.parse(grant))
        except SpecError:
            continue
    for need in map(Capability.parse, needs):
        for count in range(len(made)):
            if first_uncovered([need], made[:count]) is None:
                assert first_uncovered([need], made[: count + 1]) is None


@pytest.mark.parametrize(
    ("need", "shown"),
    [
        ("env:read:HOME", "env:read:HOME"),
        ("net:read:HTTPS", "net:read:HTTPS"),
        ("fs:read:data/./x", "fs:read:data/x"),
        ("fs:read:data/", "fs:read:data"),
        ("fs:read:.", "fs:read:."),
        ("fs:read", "fs:read"),
        ("fs:read:../x", "fs:read:../x"),
    ],
)
def test_only_paths_are_shown_in_another_spelling(need: str, shown: str) -> None:
    """Approvers see the path that the sandbox opens; other scopes and invalid paths stay as they are."""
    assert str(normal(Capability.parse(need))) == shown


@pytest.mark.parametrize("kind", [Capability, Grant])
def test_verbs_are_in_lower_case_and_unique(kind: Any) -> None:
    assert kind("FS", ("READ", "read", "Write"), ("a",)).verbs == ("read", "write")
    assert kind.parse("FS:READ,read,Write:a") == kind("fs", ("read", "write"), ("a",))
