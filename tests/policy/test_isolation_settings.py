"""Which tools a policy isolates, and with which settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import ExecutionPolicy, Isolation, SpecError
from neuroscript.isolation.confinement import ATTEMPTS
from neuroscript.policy.isolation import LAYERS, IsolationOf
from neuroscript.tools.fingerprints import policy_digest

TOOL, ORIGIN = "acme.search", "Acme_Tools 1.2"

# One layer


@pytest.mark.parametrize(
    ("pattern", "tool", "expected"),
    [
        ("acme.*", "acme.search", True),
        ("acme.*", "acme.web.search", True),
        ("tool.Acme.*", "tool.acme.Search", True),
        ("*", "math.add", True),
        ("acme.*", "acmes.search", False),
        ("acme", "acme.search", False),
    ],
)
def test_tool_is_isolated_by_name(pattern: str, tool: str, expected: bool) -> None:
    """Patterns match as those of allow and deny do. Their imports are not isolated."""
    isolation = Isolation(tools=[pattern])

    assert isolation.isolates(tool, "host") is expected
    assert not isolation.isolates_import("host")


@pytest.mark.parametrize(
    ("pattern", "origin"),
    [
        ("acme-tools", "Acme_Tools 1.2"),
        ("Acme.Tools", "acme-tools 1.2"),
        ("acme-*", "acme_tools 1.2"),
        ("acme-tools 1.*", "acme-tools 1.2"),
        ("acme.py", "acme.py"),
        ("acme.py", "./plugins/acme.py"),
        ("acme.py", "/opt/plugins/acme.py"),
        ("acme.py", "acme.py 2"),
        ("/opt/plugins/*.py", "/opt/other/../plugins/acme.py 2"),
        ("./acme.py", "/opt/acme.py"),
        ("../plugins/acme.py", "plugins/acme.py"),
        ("plugins/*.py", "/opt/plugins/acme.py"),
        ("plugins/*.py", "/opt/plugins/deep/acme.py"),
        ("plugins//acme/", "plugins/acme"),
        ("/opt/plugins/*", "/opt/other/../plugins/deep/acme.py"),
        ("*", "anything 1.0"),
        (r"a\[1\].py", "a[1].py"),
    ],
)
def test_import_is_isolated_by_distribution_or_file(pattern: str, origin: str) -> None:
    isolation = Isolation(plugins=[pattern])

    assert isolation.isolates_import(origin)
    assert isolation.isolates("any.tool", origin)


@pytest.mark.parametrize(
    ("pattern", "origin"),
    [
        ("acme-tools", "acme-tools-extra 1.2"),
        ("acme-tools", "acme 1.2"),
        ("acme.py", "my-acme.py"),
        ("acme.py", "acme.py/other.py"),
        ("plugins/acme.py", "/opt/myplugins/acme.py"),
        ("/opt/plugins/*", "/srv/opt/plugins/acme.py"),
        ("acme", ""),
    ],
)
def test_other_imports_are_not_isolated(pattern: str, origin: str) -> None:
    isolation = Isolation(plugins=[pattern])

    assert not isolation.isolates_import(origin)
    assert not isolation.isolates("any.tool", origin)


def test_relative_file_is_found_below_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that starts in the directory of the plugins names them without it."""
    (tmp_path / "plugins").mkdir()
    monkeypatch.chdir(tmp_path / "plugins")

    assert Isolation(plugins=[f"{tmp_path.as_posix()}/plugins/*"]).isolates_import("acme.py")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete the working directory of a process")
def test_file_is_found_by_name_without_a_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()

    assert Isolation(plugins=["acme.py"]).isolates_import("acme.py")


def test_import_of_one_entry_point_is_isolated() -> None:
    isolation = Isolation(plugins=["acme-web"])

    assert isolation.isolates_import("acme 1.2", "acme-web")
    assert isolation.isolates("acme.get", "acme 1.2", "acme-web")
    assert not isolation.isolates_import("acme 1.2", "acme-math")


@pytest.mark.parametrize(
    ("tool", "origin", "expected"),
    [
        ("math.add", "host", True),
        ("acme.get", "host", True),
        ("acme.search", "host", False),
        ("tool.shell.Execute", "host", False),
        ("shell.execute", "web.py", True),
    ],
    ids=["other tool", "other tool of the group", "name", "pattern", "plugin"],
)
def test_excluded_tool_runs_in_the_host(tool: str, origin: str, expected: bool) -> None:
    """But the host never runs code of a plugin that it does not import."""
    isolation = Isolation(tools=["*"], exclude=["shell.*", "tool.acme.Search"], plugins=["web.py"])

    assert isolation.isolates(tool, origin) is expected
    assert (ExecutionPolicy(isolate=isolation).isolation_of(tool, origin) is not None) is expected


@pytest.mark.parametrize(
    ("tools", "exclude", "expected"),
    [
        (["*"], ["acme.search"], False),
        (["*"], ["acme.find"], True),
        (["acme.find"], ["acme.search"], True),
        (["acme.find"], ["acme.find"], False),
        (["acme.f*"], ["acme.find"], True),
        (["acme.search", "acme.find"], ["acme.search"], True),
    ],
)
def test_tool_cannot_leave_its_process_by_taking_an_excluded_name(
    tools: list[str], exclude: list[str], expected: bool
) -> None:
    """A pattern that matches old names alone isolates the tool, unless all these names are excluded."""
    policy = ExecutionPolicy(isolate=Isolation(tools=tools, exclude=exclude))

    assert (policy.isolation_of(TOOL, ORIGIN, old=("acme.find", "acme.fetch")) is not None) is expected


def test_exclusion_has_no_effect_on_other_layers() -> None:
    isolated, excluding = Isolation(tools=["acme.*"], workers=2), Isolation(tools=["*"], exclude=["acme.*"], workers=1)

    for outer, inner in ((isolated, excluding), (excluding, isolated)):
        found = ExecutionPolicy(isolate=outer).narrowed(isolate=inner).isolation_of(TOOL, ORIGIN)
        assert found and found.workers == 2


def test_fields_are_normalised() -> None:
    isolation = Isolation(
        tools={"b.*", "tool.A.*"},
        exclude=("Acme.Get",),
        plugins=["x", "x"],
        network=("Acme.Get",),
        require=["pidns"] * 2,
    )

    assert (isolation.tools, isolation.plugins) == (("b.*", "a.*"), ("x",))
    assert (isolation.network, isolation.require) == (("acme.get",), ("pidns",))
    assert isolation.exclude == ("acme.get",)
    assert hash(isolation) == hash(attrs.evolve(isolation))


NOT_A_PLUGIN: Final = "use a distribution, an entry point, or a path such as plugins/*.py"


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"tools": "acme.*"}, ["tools must be a collection of strings, not str"]),
        ({"tools": [1]}, ["tools[0] must be a string, not int"]),
        ({"tools": ["[a]"]}, ["tools: [a] is not a valid pattern; use a name, or a pattern such as acme.*"]),
        ({"tools": ["a b"]}, ["tools: a b is not a valid pattern; use a name, or a pattern such as acme.*"]),
        ({"exclude": "a.*"}, ["exclude must be a collection of strings, not str"]),
        ({"exclude": ["a b"]}, ["exclude: a b is not a valid pattern; use a name, or a pattern such as acme.*"]),
        ({"network": [""]}, ["network:  is not a valid pattern; use a name, or a pattern such as acme.*"]),
        (
            {"plugins": ["[a]", "", "~/plugins/a.py"]},
            [
                r"plugins: [a] is not a valid pattern; character classes are not supported; write \[ for a bracket",
                f"plugins: an empty string is not a valid pattern; {NOT_A_PLUGIN}",
                f"plugins: ~/plugins/a.py is not a valid pattern; {NOT_A_PLUGIN}",
            ],
        ),
        (
            {"require": ["landlok", "magic"], "reuse": 1},
            [
                "require: landlok is not a layer; did you mean landlock?",
                f"require: magic is not a layer; the layers are {', '.join(LAYERS)}",
                "reuse must be True or False, not int",
            ],
        ),
        (
            {"workers": 0, "max_calls": True, "memory_bytes": 2**63, "cpu_seconds": 0.5, "open_files": None},
            [
                "workers must be a positive integer of at most 63 bits",
                "max_calls must be a positive integer, not bool",
                "memory_bytes must be a positive integer of at most 63 bits",
                "cpu_seconds must be a positive integer, or None, not float",
                "open_files must be a positive integer, not None",
            ],
        ),
        (
            {"idle_seconds": 0, "start_seconds": "1", "programs": "yes"},
            [
                "idle_seconds must be a positive, finite number of seconds",
                "start_seconds must be a positive, finite number of seconds, not str",
                "programs must be True or False, not str",
            ],
        ),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        Isolation(**fields)

    assert (caught.value.subject, list(caught.value.problems)) == ("isolation", problems)


# The page

PAGE: Final = (Path(__file__).parents[2] / "docs/reference/isolation.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of the page, without the heading of the table."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in table]


def test_page_has_each_setting_and_its_default() -> None:
    words = {(): "none", True: "true", False: "false", 1024**3: "1073741824 (1 GiB)", None: "no limit"}
    defaults = {
        field.name: words[field.default] if field.default in (*words,) else str(field.default)
        for field in attrs.fields(Isolation)
        if field.init
    }

    assert {row[0].strip("`"): row[2] for row in rows("Settings")} == defaults
    (layers,) = (re.findall("`([a-z]+)`", row[1]) for row in rows("Settings") if row[0] == "`require`")
    assert tuple(layers) == LAYERS


def test_page_has_examples_of_patterns() -> None:
    table = [[re.findall("`([^`]+)`", cell) for cell in row] for row in rows("What is isolated")]

    assert len(table) == 5
    for (pattern,), isolated, others in table:
        isolation = Isolation(plugins=[pattern])
        assert [isolation.isolates_import(each) for each in isolated] == [True] * len(isolated)
        assert [isolation.isolates_import(each) for each in others] == [False] * len(others)


# Policies


@pytest.mark.parametrize("isolate", [None, (), [], frozenset()])
def test_nothing_is_isolated_by_default(isolate: Any) -> None:
    policy = ExecutionPolicy(isolate=isolate)

    assert policy == ExecutionPolicy()
    assert not policy.isolates
    assert policy.isolation_of(TOOL, ORIGIN) is None


def test_patterns_are_short_for_an_isolation() -> None:
    assert ExecutionPolicy(isolate=["acme.*"]).isolate == Isolation(tools=["acme.*"])


@pytest.mark.parametrize(
    ("isolate", "problem"),
    [
        ("acme.*", "isolate must be a collection of strings or an Isolation, not str"),
        (1, "isolate must be a collection of strings or an Isolation, not int"),
        (["acme.*", 1], "isolate[1] must be a string, not int"),
        (["a b"], "isolate: a b is not a valid pattern; use a name, or a pattern such as acme.*"),
    ],
)
def test_invalid_isolation_of_a_policy_is_refused(isolate: Any, problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        ExecutionPolicy(isolate=isolate)

    assert list(caught.value.problems) == [problem]


def test_layers_combine_to_the_strictest_settings() -> None:
    """A layer that does not isolate the tool has no part in its settings."""
    outer = Isolation(
        tools=["acme.*"],
        network=["acme.*"],
        require=["rlimits", "pidns"],
        workers=4,
        max_calls=9,
        memory_bytes=1000,
        idle_seconds=5,
        start_seconds=3,
    )
    middle = Isolation(tools=["other.*"], reuse=False, workers=1, require=["netns"])
    inner = Isolation(
        plugins=["acme-tools"],
        network=[TOOL],
        reuse=False,
        require=["landlock"],
        open_files=10,
        memory_bytes=2000,
        cpu_seconds=7,
    )
    policy = ExecutionPolicy(isolate=outer).narrowed(isolate=middle).narrowed(isolate=inner)

    assert policy.isolation_of(TOOL, ORIGIN) == IsolationOf(
        isolates_import=True,
        keeps_network=True,
        reuse=False,
        require=("landlock", "pidns", "rlimits"),
        workers=4,
        idle_seconds=5,
        max_calls=9,
        memory_bytes=1000,
        cpu_seconds=7,
        open_files=10,
        start_seconds=3,
    )


def test_programs_are_confined_as_strictly_as_any_layer_says() -> None:
    """A layer that does not confine programs has no part in that, and patterns of isolated tools have none either."""
    outer = Isolation(programs=True, network=["acme.*"], memory_bytes=1000, require=["landlock"])
    other = Isolation(tools=["acme.*"], memory_bytes=10)
    inner = Isolation(programs=True, network=[TOOL], memory_bytes=2000, cpu_seconds=7)
    policy = ExecutionPolicy(isolate=outer).narrowed(isolate=other).narrowed(isolate=inner)

    found = policy.program_isolation(TOOL)
    unnamed = policy.program_isolation("acme.find")

    assert found and (found.keeps_network, found.memory_bytes, found.cpu_seconds) == (True, 1000, 7)
    assert found.require == ("landlock",)
    assert unnamed and not unnamed.keeps_network
    assert ExecutionPolicy(isolate=other).program_isolation(TOOL) is None
    assert ExecutionPolicy().program_isolation(TOOL) is None


def test_every_layer_of_a_worker_can_be_required() -> None:
    """Those that this machine is tested for."""
    assert sorted(LAYERS) == sorted(ATTEMPTS)


def test_network_is_kept_only_if_each_isolating_layer_keeps_it() -> None:
    kept = ExecutionPolicy(isolate=Isolation(tools=["acme.*"], network=["acme.*"]))

    assert [
        policy.isolation_of(TOOL, ORIGIN).keeps_network  # type: ignore[union-attr]
        for policy in (kept, kept.narrowed(isolate=["acme.*"]), kept.narrowed(isolate=()))
    ] == [True, False, True]


def test_patterns_that_match_no_tool_are_reported() -> None:
    isolation = Isolation(tools=["acme.*", "acne.*"], exclude=["acme.get", "acme.gt"], network=["acme.get", "acme.gte"])
    policy = ExecutionPolicy(isolate=isolation)

    assert policy.unmatched(["acme.get"]) == ("acne.*", "acme.gt", "acme.gte")


def test_digest_of_a_policy_has_its_isolation() -> None:
    """A pending approval is then invalid if the isolation has changed; that of other policies is as before."""
    policies = [
        ExecutionPolicy(),
        ExecutionPolicy(isolate=["a.*"]),
        ExecutionPolicy(isolate=Isolation(tools=["a.*"], reuse=False)),
    ]
    digests = [*map(policy_digest, policies)]

    assert len({*digests}) == 3
    assert digests[0] == policy_digest(ExecutionPolicy(isolate=()))
    assert digests[0] == "746756905e0e9c5d148b577af162f1abf2474f1bd3786952cf4a046fb2e3d5be"


def test_module_is_imported_only_by_a_policy_that_isolates() -> None:
    """Other programs do not pay for it."""
    code = """
import sys
from neuroscript import Engine, ExecutionPolicy
with Engine(plugins="none", policy=ExecutionPolicy(deny=["a.*"])) as engine:
    assert engine.policy.isolation_of("a.b", "host") is None
print("neuroscript.policy.isolation" in sys.modules)
ExecutionPolicy(isolate=["a.*"])
print("neuroscript.policy.isolation" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})

    assert done.stdout.split() == ["False", "True"]


def test_isolation_by_a_former_name_stays() -> None:
    """As for deny, so that a new version of a plugin cannot leave its process by renaming its tool."""
    policy = ExecutionPolicy(isolate=["acme.find"])

    assert policy.isolation_of(TOOL, ORIGIN) is None
    assert policy.isolation_of(TOOL, ORIGIN, old=("acme.find",)) is not None
    assert policy.unmatched([TOOL], ["acme.find"]) == ()


# Narrowing

ISOLATIONS: Final = st.builds(
    Isolation,
    tools=st.lists(st.sampled_from(["acme.*", "acme.search", "math.*", "*"]), max_size=2),
    exclude=st.lists(st.sampled_from(["acme.*", "math.add"]), max_size=1),
    plugins=st.lists(st.sampled_from(["acme-tools", "web.py", "*.py", "entry"]), max_size=2),
    network=st.lists(st.sampled_from(["acme.*", "*"]), max_size=1),
    reuse=st.booleans(),
    require=st.lists(st.sampled_from(LAYERS), unique=True),
    workers=st.integers(1, 3),
    idle_seconds=st.integers(1, 3),
    max_calls=st.integers(1, 3),
    memory_bytes=st.integers(1, 3),
    cpu_seconds=st.none() | st.integers(1, 3),
    open_files=st.integers(1, 3),
    start_seconds=st.integers(1, 3),
    programs=st.booleans(),
)
TOOLS: Final = st.sampled_from(["acme.search", "math.add"])
ORIGINS: Final = st.sampled_from(["Acme_Tools 1.2", "./web.py", "host"])


def strictness(found: IsolationOf | None) -> list[float]:
    """Return numbers that are higher for stricter isolation; all are the lowest possible without isolation."""
    if found is None:
        return [-(2**70)] * (10 + len(LAYERS))
    cpu = 2**69 if found.cpu_seconds is None else found.cpu_seconds
    least = (found.workers, found.idle_seconds, found.max_calls, found.memory_bytes, found.open_files, cpu)
    switches = (found.isolates_import, not found.keeps_network, not found.reuse)
    return [
        *map(float, switches),
        *(-each for each in least),
        -found.start_seconds,
        *(float(layer in found.require) for layer in LAYERS),
    ]


@given(layers=st.lists(ISOLATIONS | st.none(), min_size=1, max_size=3), tool=TOOLS, origin=ORIGINS, ceiling=ISOLATIONS)
def test_narrowing_never_isolates_less(
    layers: list[Isolation | None], tool: str, origin: str, ceiling: Isolation
) -> None:
    """Each further layer isolates a tool as strictly as before, or more strictly, wherever it is added."""
    policy = ExecutionPolicy(isolate=layers[0])
    for layer in layers[1:]:
        narrowed = policy.narrowed(isolate=layer)
        assert_as_strict(policy, narrowed, tool, origin)
        policy = narrowed
    enclosed = policy.inside(ExecutionPolicy(isolate=ceiling))

    for outer in (policy, ExecutionPolicy(isolate=ceiling)):
        assert_as_strict(outer, enclosed, tool, origin)


def assert_as_strict(outer: ExecutionPolicy, inner: ExecutionPolicy, tool: str, origin: str) -> None:
    """Check that a policy isolates a tool, and confines its programs, as strictly as another one, or more strictly."""
    for before, after in (
        (outer.isolation_of(tool, origin), inner.isolation_of(tool, origin)),
        (outer.program_isolation(tool), inner.program_isolation(tool)),
    ):
        assert all(old <= new for old, new in zip(strictness(before), strictness(after), strict=True))
