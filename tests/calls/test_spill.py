"""Large results written to sandbox files: complete, announced, and never lost silently."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    Limits,
    MemoryAudit,
    SpecError,
    Spill,
    ToolCall,
    ToolFailed,
    ToolResult,
    Toolset,
    result_to_data,
)
from neuroscript.calls.spill_writer import ResultFile
from neuroscript.runtime.result_text import result_text, shorten

tools = Toolset("t")


@tools.tool()
def text(size: int, of: str = "x") -> str:
    """Return a string."""
    return of * size


@tools.tool()
def words(count: int) -> list[str]:
    """Yield words."""
    return [f"word {number}" for number in range(count)]


@tools.tool()
def raw(size: int) -> bytes:
    """Yield bytes."""
    return b"\xff" * size


@tools.tool()
def secret(count: int) -> Iterator[str]:
    """Yield a secret repeatedly."""
    for _ in range(count):
        yield "the word is sesame-42-and-open"


@tools.tool()
def stream(count: int, then: str = "") -> Iterator[dict[str, Any]]:
    """Yield maps, and optionally fail."""
    for number in range(count):
        yield {"number": number, "text": "é"}
    if then:
        raise ToolFailed(then)


@tools.tool()
async def astream(count: int) -> AsyncIterator[int]:
    """Yield numbers as an async generator."""
    for number in range(count):
        yield number


Carried = Callable[..., ToolResult]


@pytest.fixture(params=["execute", "aexecute"])
def carried(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Carried]:
    """Executes a call by either entry point of an engine that offloads results."""
    engines: list[Engine] = []

    def out(name: str, *args: Any, on_item: Any = None, limits: Any = None, **spill: Any) -> ToolResult:
        engine = Engine(
            toolsets=[tools],
            plugins="none",
            host=Host(sandbox_dir=tmp_path / "box", secrets={"word": "sesame-42-and-open"}),
            policy=ExecutionPolicy(limits=limits),
            spill=Spill(**{"threshold_bytes": 100, "preview_chars": 10, **spill}),
        )
        engines.append(engine)
        call = ToolCall(name, args, id="c1")
        if request.param == "execute":
            return engine.execute(call, on_item=on_item)
        return asyncio.run(engine.aexecute(call, on_item=on_item))

    yield out
    for each in engines:
        each.close()


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """The sandbox."""
    return tmp_path / "box"


def test_small_result_is_unchanged(carried: Carried, box: Path) -> None:
    """The size counts the bytes that a model reads, and no file is made."""
    assert ("x" * 100, None) == ((result := carried("t.text", 100)).value, result.spilled)
    assert ("é" * 50, None) == ((result := carried("t.text", 50, "é")).value, result.spilled)
    assert [0, 1] == carried("t.astream", 2).value
    assert not (box / "results").exists()


@pytest.mark.parametrize(
    ("name", "ending", "whole", "beginning"),
    [
        ("t.text", "txt", lambda data: data == b"x" * 200, "xxxxxxxxxx"),
        ("t.words", "json", lambda data: json.loads(data) == [f"word {n}" for n in range(200)], '["word 0",'),
        ("t.raw", "bin", lambda data: data == b"\xff" * 200, '{"$base64"'),
        ("t.astream", "jsonl", lambda data: [*map(json.loads, data.splitlines())] == [*range(200)], "0\n1\n2\n3\n4\n"),
    ],
)
def test_large_result_becomes_a_file_and_an_excerpt(
    carried: Carried, box: Path, name: str, ending: str, whole: Callable[[bytes], bool], beginning: str
) -> None:
    """The answer gives the file, its size, and the type of its content."""
    result = carried(name, 200)

    assert result.ok
    assert result.spilled is not None
    path, data = result.spilled.path, (box / result.spilled.path).read_bytes()
    assert (f"results/{name}-", f".{ending}") == (path[: len(name) + 9], path[-len(ending) - 1 :])
    assert whole(data)
    assert len(data) == result.spilled.size
    items = ", 200 items as JSON lines," if ending == "jsonl" else ""
    beginning = beginning.removesuffix("\n")
    assert f"{beginning}\n[beginning of a result of {len(data)} bytes; the full result{items} is in the sandbox file {path}]" == result.value  # fmt: skip
    assert (200 if items else None) == result.spilled.items
    assert result_text(shorten(result, 20)) == result_text(result) == result.value
    assert {"path": path, "size": len(data), "items": result.spilled.items} == result_to_data(result)["spilled"]


def test_two_results_are_two_files(carried: Carried, box: Path) -> None:
    """This holds for the same tool at the same time."""
    found = {carried("t.text", 200).spilled.path for _ in range(5)}  # type: ignore[union-attr]

    assert found == {f"results/{each.name}" for each in (box / "results").iterdir()}
    assert 5 == len(found)


def test_tool_with_a_long_name_has_files_too(tmp_path: Path) -> None:
    """File systems limit the length of names."""
    long = Toolset(".".join("g" * 100 for _ in range(3)))
    long.tool(name="t" * 100)(text)
    with Engine(
        toolsets=[long], plugins="none", host=Host(sandbox_dir=tmp_path), spill=Spill(threshold_bytes=100)
    ) as engine:
        (name,) = engine.tools
        result = engine.execute(ToolCall(name, [200]))

    assert result.spilled is not None
    assert f"results/{'g' * 100}-" == result.spilled.path[:109]
    assert "x" * 200 == (tmp_path / result.spilled.path).read_text()


def test_excerpt_says_how_to_read_the_file(tmp_path: Path) -> None:
    """It names a tool that can read it, if there is one."""
    policy = ExecutionPolicy(grants=("fs:read:results/**",))
    host = Host(sandbox_dir=tmp_path)
    with Engine(
        plugins=["neuroscript-fs"], toolsets=[tools], host=host, policy=policy, spill=Spill(threshold_bytes=100)
    ) as engine:
        result = engine.execute(ToolCall("t.words", [50]))
        assert result.spilled is not None
        read = engine.call("fs.read", [result.spilled.path])

    assert result.value.endswith(f"is in the sandbox file {result.spilled.path}; read it with fs.read]")
    assert [f"word {number}" for number in range(50)] == json.loads("\n".join(read) if type(read) is list else read)


def test_oversized_stream_is_written_as_it_arrives(
    carried: Carried, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream too large for a call to collect succeeds, with little memory."""
    monkeypatch.setattr("neuroscript.calls.streams.MAX_COLLECTED_ITEMS", 10)
    monkeypatch.setattr("neuroscript.calls.spill_writer.BLOCK_BYTES", 300)
    sizes: list[int] = []

    def look(item: Any) -> None:
        sizes.extend(each.stat().st_size for each in box.glob("results/*"))

    result = carried("t.stream", 1000, on_item=look, threshold_bytes=1_000_000)

    assert result.spilled is not None
    lines = (box / result.spilled.path).read_text().splitlines()
    assert [{"number": number, "text": "é"} for number in range(1000)] == [*map(json.loads, lines)]
    assert len(set(sizes)) > 10
    assert sizes == sorted(sizes)


def test_items_before_an_error_are_retained(carried: Carried, box: Path) -> None:
    """The error says where they are."""
    result = carried("t.stream", 100, "there is no more")

    assert result.error is not None
    (file,) = box.glob("results/*")
    expected = f"t.stream: there is no more (after 100 items); the first 100 items are in the file results/{file.name} of the sandbox"
    assert (expected, 100) == (str(result.error), result.error.items)
    assert 100 == len(file.read_text().splitlines())


def test_file_contains_no_secret(carried: Carried, box: Path) -> None:
    """A model reads it."""
    received: list[str] = []
    result = carried("t.secret", 20, on_item=received.append)
    carried("t.text", 20, "sesame-42-and-open")

    assert ["the word is [secret]"] * 20 == received
    assert result.value.startswith('"the word ')
    files = [each.read_text() for each in box.glob("results/*")]
    assert 2 == len(files)
    assert not any("sesame" in each for each in files)


def test_file_size_is_limited(carried: Carried, box: Path) -> None:
    """Neither an endless stream nor a single result can fill the disk."""
    result = carried("t.astream", 10**9, max_bytes=2000)
    large = carried("t.text", 3000, max_bytes=2000)

    assert isinstance(result.error, LimitError)
    assert isinstance(large.error, LimitError)
    (file,) = box.glob("results/*")
    lines = len(file.read_text().splitlines())
    assert (
        "limit.items", "host",
        f"t.astream: a result in a file may have at most 2000 bytes; the first {lines} items are in the file results/{file.name} of the sandbox",
    ) == (result.error.code, result.error.retry, str(result.error))  # fmt: skip
    assert (lines, True) == (result.error.items, 1990 < file.stat().st_size <= 2000)
    assert [*range(lines)] == [*map(json.loads, file.read_text().splitlines())]
    assert "t.text: a result in a file may have at most 2000 bytes" == str(large.error)


def test_offloaded_bytes_count_against_the_file_limit(carried: Carried, box: Path) -> None:
    """A model receives an error when the host's limit is reached."""
    result = carried("t.text", 200, limits=Limits(fs_bytes=150))

    assert isinstance(result.error, LimitError)
    assert (
        "limit.fs_bytes", "host",
        "t.text: returned a result of 200 bytes, which could not be written to a file: no more than 150 bytes of file data are permitted",
    ) == (result.error.code, result.error.retry, str(result.error))  # fmt: skip
    assert not [*box.glob("results/*")]


@pytest.mark.parametrize("name", ["t.text", "t.astream"])
def test_unwritable_file_is_an_error(carried: Carried, box: Path, name: str) -> None:
    """The error gives the reason, and nothing is cut silently."""
    box.mkdir()
    (box / "results").write_text("a file where the directory should be")

    result = carried(name, 200)

    assert isinstance(result.error, ToolFailed)
    assert ("sandbox.notdir", "model") == (result.error.code, result.error.retry)
    assert "which could not be written to a file: " in str(result.error)


def test_other_entry_points_return_the_full_value(tmp_path: Path) -> None:
    """A host that calls a tool needs its value."""
    with Engine(
        toolsets=[tools], plugins="none", host=Host(sandbox_dir=tmp_path), spill=Spill(threshold_bytes=10)
    ) as engine:
        assert "x" * 200 == engine.call("t.text", (200,))
        assert [*range(200)] == engine.call("t.astream", (200,)) == [*engine.stream("t.astream", (200,))]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"threshold_bytes": -1}, "threshold_bytes must be a non-negative integer (bytes)"),
        ({"threshold_bytes": True}, "threshold_bytes must be a non-negative integer (bytes), not bool"),
        ({"preview_chars": 1.5}, "preview_chars must be a non-negative integer (characters), not float"),
        ({"max_bytes": 0}, "max_bytes must be an integer (bytes) of at least threshold_bytes"),
        ({"folder": "../out"}, "folder must be a path below the sandbox"),
        ({"folder": 5}, "folder must be a path below the sandbox, not int"),
    ],
)
def test_invalid_spill_is_refused(fields: dict[str, Any], problem: str) -> None:
    """The constructor raises the error."""
    with pytest.raises(SpecError) as caught:
        Spill(**fields)

    assert f"spill: {problem}" == str(caught.value)


def test_engine_accepts_only_a_spill() -> None:
    """A plain number would not say what it limits."""
    with pytest.raises(SpecError) as caught:
        Engine(plugins="none", spill=100_000)

    assert "Engine: spill must be a Spill, or None, not int; write Spill(...)" == str(caught.value)


@pytest.mark.parametrize("change", [lambda file: file.unlink(), lambda file: file.write_text("0"), Path.touch])
def test_file_changed_during_the_write_is_an_error(
    carried: Carried, box: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    """Otherwise the answer would claim that the file contains the complete result."""
    monkeypatch.setattr("neuroscript.calls.spill_writer.BLOCK_BYTES", 300)

    def look(item: int) -> None:
        if item == 500:
            (file,) = box.glob("results/*")
            change(file)

    result = carried("t.astream", 1000, on_item=look)

    if change is Path.touch:
        assert result.ok
    else:
        assert "returned a result of 1000 items, but its file results/t.astream-" in str(result.error)
        assert str(result.error).endswith(".jsonl was changed meanwhile (after 1000 items)")


@pytest.mark.parametrize("entry_point", ["execute", "aexecute"])
def test_failed_last_write_is_recorded(tmp_path: Path, entry_point: str) -> None:
    """The call has failed, whatever the tool returned."""
    audit = MemoryAudit()
    policy = ExecutionPolicy(limits=Limits(fs_bytes=250))
    with Engine(
        toolsets=[tools],
        plugins="none",
        host=Host(sandbox_dir=tmp_path),
        audit=audit,
        policy=policy,
        spill=Spill(threshold_bytes=100),
    ) as engine:
        call = ToolCall("t.astream", [200])
        result = engine.execute(call) if entry_point == "execute" else asyncio.run(engine.aexecute(call))

    (record,), (file,) = audit.records, (tmp_path / "results").iterdir()
    written = len(file.read_text().splitlines())
    assert 0 < written < 200
    assert (
        f"t.astream: returned a result of 200 items or more, which could not be written to a file: no more than 250 bytes of file data are permitted (after 200 items); the first {written} items are in the file results/{file.name} of the sandbox"
    ) == str(result.error)
    assert ("limit.fs_bytes", 200) == (record.code, record.spent["items"])


def test_event_loop_continues_while_a_stream_is_written(
    carried: Carried, box: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """For awaited calls, each block is written on another thread."""
    writing: set[int] = set()
    add = ResultFile.add

    def noted(self: ResultFile, data: bytes, given: str) -> None:
        writing.add(threading.get_ident())
        add(self, data, given)

    monkeypatch.setattr(ResultFile, "add", noted)
    monkeypatch.setattr("neuroscript.calls.spill_writer.BLOCK_BYTES", 300)
    seen: list[int] = []

    carried("t.astream", 1000, on_item=seen.append)
    carried("t.stream", 100, "there is no more")
    carried("t.text", 200)

    assert [*range(1000)] == seen
    is_ours = "aexecute" not in request.node.callspec.id
    assert (is_ours, True) == (threading.get_ident() in writing, bool(writing))


def test_record_of_an_offloaded_stream_counts_all_items(tmp_path: Path) -> None:
    """It was read to its end."""
    audit = MemoryAudit()
    host = Host(sandbox_dir=tmp_path)
    with Engine(toolsets=[tools], plugins="none", host=host, audit=audit, spill=Spill(threshold_bytes=10)) as engine:
        engine.execute(ToolCall("t.astream", [200]))

    (record,) = audit.records
    assert ("ok", {"items": 200, "result_bytes": 1600}) == (record.code, dict(record.spent))
