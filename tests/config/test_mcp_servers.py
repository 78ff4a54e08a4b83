"""MCP servers in a policy file: their settings, and problems with a line and a path, but without values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuroscript import Secret, SpecError
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.config.policy_file import load_policy, load_servers

WHOLE = """\
[policy]
grants = ["mcp:call:files/*"]

[mcp.files]
command = ["files-server", "--root", "/srv"]
env = {LEVEL = "info", TOKEN = {secret = "files-token"}}
cwd = "work"
timeout = 2.5
trusted = true
trust_annotations = true
select = ["files.read_*", "files.list"]
skip = true
group = "Far.Files"
accepted = "known.json"
confine = true
read = "docs"
write = ["out", "/var/lib/files"]
network = true
roots = true
sampling = true
description_chars = 300

[mcp.my-shop]
url = "https://shop.example/mcp"
headers = {Authorization = {secret = "shop-token"}}
select = "my_shop.*"
timeout = 5
"""


def test_each_table_is_a_call_of_from_mcp(tmp_path: Path) -> None:
    """Paths are relative to the file, the name is also the group, and other settings have the usual defaults."""
    file = tmp_path / "p.toml"
    file.write_text(WHOLE)

    assert load_servers(file) == (
        ServerTable(
            "files",
            "far.files",
            command=("files-server", "--root", "/srv"),
            env={"LEVEL": "info", "TOKEN": Secret("files-token")},
            cwd=str(tmp_path / "work"),
            timeout=2.5,
            trusted=True,
            trust_annotations=True,
            select=("files.read_*", "files.list"),
            skip=True,
            accepted=str(tmp_path / "known.json"),
            confine=True,
            read=(str(tmp_path / "docs"),),
            write=(str(tmp_path / "out"), "/var/lib/files"),
            network=True,
            roots=True,
            sampling=True,
            description_chars=300,
        ),
        ServerTable(
            "my-shop",
            "my_shop",
            url="https://shop.example/mcp",
            headers={"Authorization": Secret("shop-token")},
            cwd=f"{tmp_path}{os.sep}",
            timeout=5.0,
            select=("my_shop.*",),
            accepted=str(tmp_path / "my-shop.mcp.json"),
        ),
    )
    assert [type(each.timeout) for each in load_servers(file)] == [float, float]
    assert load_policy(file).grants != ()


def test_a_file_without_such_tables_names_no_server(tmp_path: Path) -> None:
    """As nearly all do."""
    (tmp_path / "p.toml").write_text("policy.deny = ['*']\n[mcp]\n")

    assert load_servers(tmp_path / "p.toml") == ()


FAULTS = [
    ("mcp = 3", ["1: mcp: must be a table, [mcp]"]),
    ("[mcp]\nfiles = 3", ["2: mcp.files: must be a table, [mcp.files]", "2: mcp.files: set either command or url"]),
    ("[mcp.files]", ["1: mcp.files: set either command or url"]),
    (
        "[mcp.files]\ncommand = ['a']\nurl = 'http://x/'",
        ["1: mcp.files: set either command or url"],
    ),
    (
        "[mcp.files]\ncommand = 'rm -rf'\nurls = 'x'",
        [
            "2: mcp.files.command: must be an array of strings: the program and its arguments",
            "3: mcp.files.urls: unknown key; did you mean url?",
        ],
    ),
    ("[mcp.a]\ncommand = []", ["2: mcp.a.command: must be an array of strings: the program and its arguments"]),
    ("[mcp.a]\ncommand = ['']", ["2: mcp.a.command: must be an array of strings: the program and its arguments"]),
    ("[mcp.a]\ncommand = ['x', 1]", ["2: mcp.a.command: must be an array of strings: the program and its arguments"]),
    (
        "[mcp.a]\nurl = 'http://me:hush@x/'",
        ["2: mcp.a.url: must be an address such as http://127.0.0.1:8000/mcp, without a password"],
    ),
    ("[mcp.a]\nurl = 'http://x/'\ncwd = '/'", ["1: mcp.a: cwd cannot be used with url"]),
    ("[mcp.a]\ncommand = ['x']\nheaders = {}", ["1: mcp.a: headers cannot be used with command"]),
    (
        "[mcp.a]\nurl = 'http://x/'\nconfine = true\nread = ['/srv']",
        [
            "1: mcp.a: confine cannot be used with url, because this process does not start the server",
            "1: mcp.a: read cannot be used with url, because this process does not start the server",
        ],
    ),
    (
        "[mcp.a]\ncommand = ['x']\nwrite = 'data'\nnetwork = true",
        ["1: mcp.a: write, network can only be used with confine"],
    ),
    (
        "[mcp.a]\ncommand = ['x']\nconfine = 1\nread = [1]\nwrite = {}",
        [
            "3: mcp.a.confine: must be true or false",
            "4: mcp.a.read: must be an array of paths, in brackets",
            "5: mcp.a.write: must be an array of paths, in brackets",
        ],
    ),
    (
        "[mcp.a]\ncommand = ['x']\nenv = {A = 1, B = {secrets = 'hush'}, C = \"hu\\nsh\", '' = 'hush'}",
        [
            '3: mcp.a.env.A: must be a string of one line, in quotes, or {secret = "NAME"}',
            '3: mcp.a.env.B: must be a string of one line, in quotes, or {secret = "NAME"}',
            '3: mcp.a.env.C: must be a string of one line, in quotes, or {secret = "NAME"}',
            '3: mcp.a.env."": is not a valid name',
        ],
    ),
    (
        "[mcp.a]\nurl = 'http://x/'\n[mcp.a.headers]\n'A B' = 'hush'",
        ['4: mcp.a.headers."A B": is not a valid name'],
    ),
    (
        "[mcp.a]\ncommand = ['x']\nenv = {A = {secret = ''}}",
        ['3: mcp.a.env.A: must be a string of one line, in quotes, or {secret = "NAME"}'],
    ),
    (
        "[mcp.a]\ncommand = ['x']\ntimeout = 0\ntrusted = 'yes'\nskip = 1\ncwd = ''\ngroup = 'a b'\naccepted = 3",
        [
            "3: mcp.a.timeout: must be a positive, finite number of seconds",
            "4: mcp.a.trusted: must be true or false",
            "5: mcp.a.skip: must be true or false",
            "6: mcp.a.cwd: must be the path of a directory, in quotes",
            "7: mcp.a.group: must be the name of a group, such as files",
            "8: mcp.a.accepted: must be the path of a file, in quotes",
        ],
    ),
    ("[mcp.a]\ncommand = ['x']\ntimeout = inf", ["3: mcp.a.timeout: must be a positive, finite number of seconds"]),
    ("[mcp.a]\ncommand = ['x']\ntimeout = true", ["3: mcp.a.timeout: must be a positive, finite number of seconds"]),
    ("[mcp.a]\ncommand = ['x']\ndescription_chars = 0", ["3: mcp.a.description_chars: must be a positive integer"]),
    (
        "[mcp.a]\ncommand = ['x']\nselect = ['a.*', 'a b', 3]",
        [
            "3: mcp.a.select[1]: must be the name of a tool, or a pattern such as files.read_*",
            "3: mcp.a.select[2]: must be the name of a tool, or a pattern such as files.read_*",
        ],
    ),
    (
        "[mcp.a]\ncommand = ['x']\nselect = []",
        ["3: mcp.a.select: must be an array of patterns such as files.read_*, in brackets"],
    ),
    (
        "[mcp.'../a']\ncommand = ['x']",
        ['1: mcp."../a": a server name can contain only ASCII letters, digits, - and _'],
    ),
    ("[mcp.2]\ncommand = ['x']", ["1: mcp.2: is not a valid name of a group; set group"]),
    (
        "[mcp.a]\ncommand = ['x']\n[mcp.b]\ncommand = ['x']\ngroup = 'A'",
        ["5: mcp.b.group: a is also the group of a"],
    ),
    (
        "[policy]\nalow = []\n[mcp.a]\ncomand = []",
        [
            "2: policy.alow: unknown key; did you mean allow?",
            "3: mcp.a: set either command or url",
            "4: mcp.a.comand: unknown key; did you mean command?",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FAULTS, ids=[text.replace("\n", " ")[:40] for text, _ in FAULTS])
def test_each_problem_is_reported_with_its_path_and_without_a_value(
    text: str, expected: list[str], tmp_path: Path
) -> None:
    """By the parser of the policy, and by that of the servers."""
    (tmp_path / "p.toml").write_text(text)

    for read in (load_policy, load_servers):
        with pytest.raises(SpecError) as caught:
            read(tmp_path / "p.toml")
        assert list(caught.value.sentences) == [f"p.toml:{each}" for each in expected]
        assert "hush" not in str(caught.value)


def test_the_values_of_a_server_are_not_shown(tmp_path: Path) -> None:
    """They may be secret, although they should not be in the file."""
    (tmp_path / "p.toml").write_text("[mcp.a]\ncommand = ['x']\nenv = {A = 'hush'}")

    assert "hush" not in repr(load_servers(tmp_path / "p.toml"))
