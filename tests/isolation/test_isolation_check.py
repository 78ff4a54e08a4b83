"""``neuroscript isolation check``: it proves what is in force, and reports what is not."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import pytest
from tests.cli.conftest import command
from tests.cli.test_doctor import doctor
from tests.isolation.children import NOBODY, outcome

from neuroscript.cli.isolation.probe import layers_of_a_worker
from neuroscript.isolation import check, confinement, landlock
from neuroscript.isolation.check import ATTACKS, CONFINEMENTS, PROOFS, TOGETHER, prove
from neuroscript.isolation.confinement import available, read_list

missing = {name: reason for name, reason in available().items() if reason}
pytestmark = [
    pytest.mark.skipif(bool(missing), reason="some layers of the confinement are not available here"),
    pytest.mark.alone,  # shared memory has one list for all processes
]


def test_every_attack_is_blocked_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the superuser can try to change owners. No process, descriptor, file or shared memory remains."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def segments() -> list[str]:
        lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        return [line for line in lines if int(line.split()[4]) == os.getpid()]

    before = os.listdir("/proc/self/fd")
    proofs = prove()
    expected = [(layer, name) for layer, names in PROOFS.items() for name in names]
    unproved = {each.attack for each in proofs if each.outcome != "blocked"}

    assert [each[:2] for each in proofs] == [*expected, *((TOGETHER, name) for name in ATTACKS)]
    assert unproved <= (set() if os.geteuid() == 0 else {"change the owner of a file"})
    assert (os.listdir(tmp_path), segments()) == ([], [])
    assert {*os.listdir("/proc/self/fd")} <= {*before}
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_unprivileged_user_proves_the_same() -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser can become another user")

    def run() -> list[tuple[str, ...]]:
        tempfile.tempdir = "/tmp"
        return [tuple(each) for each in prove() if each.outcome != "blocked"]

    refused = ("change the owner of a file", "not provable here")
    reason = "without confinement, it fails: Operation not permitted"

    assert eval(outcome(run, user=NOBODY)) == [
        ("capabilities", *refused, reason),
        (TOGETHER, *refused, reason),
    ]


def test_every_attack_is_tried_against_a_layer_that_has_to_block_it() -> None:
    assert {name for names in PROOFS.values() for name in names} == {*ATTACKS}
    assert {*PROOFS, TOGETHER, "userns"} == {*CONFINEMENTS, "userns"} == {*available(), TOGETHER}


def test_layer_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """So each proof can fail."""
    for layer in PROOFS:
        monkeypatch.setitem(CONFINEMENTS, layer, lambda: None)
    found = {each[:3] for each in prove() if each.layer != TOGETHER and each.outcome != "not provable here"}
    unprovable = set() if os.geteuid() == 0 else {"change the owner of a file"}

    assert found == {
        (layer, name, "not blocked") for layer, names in PROOFS.items() for name in names if name not in unprovable
    }


def test_proof_says_why_it_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer fails, the attack fails without it too, or the kernel's Landlock is too old."""

    def fail(target: check.Target | None = None) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(landlock, "version", lambda: 3)
    monkeypatch.setitem(CONFINEMENTS, "mountns", fail)
    monkeypatch.setitem(ATTACKS, "send by UDP", fail)
    found = {each[:2]: each[2:] for each in prove() if each.outcome != "blocked" and "owner" not in each.attack}
    unprovable = ("not provable here", "without confinement, it fails: Operation not permitted")

    assert found == {
        **{("mountns", name): ("not available", "Operation not permitted") for name in PROOFS["mountns"]},
        **{(layer, "send by UDP"): unprovable for layer in ("netns", "seccomp", TOGETHER)},
        ("landlock", "connect by TCP"): ("not available", "needs version 4 of Landlock, found 3"),
        ("landlock", "signal a process"): ("not available", "needs version 6 of Landlock, found 3"),
        ("landlock", "connect to an abstract socket"): ("not available", "needs version 6 of Landlock, found 3"),
    }


# The command


def test_command_prints_layers_attacks_and_the_read_list() -> None:
    result = command("isolation", "check", make_engine=None)
    count = sum(map(len, PROOFS.values())) + len(ATTACKS)
    blocks = dict(block.split("\n", 1) for block in result.out.split("\n\n")[:-1])

    assert (result.code, result.err) == (0, "")
    assert [*blocks] == ["layers", "layers of a worker", "attacks", "every worker may read", "with the network also"]
    assert blocks["layers"].split()[::2] == [*available()]
    assert blocks["layers of a worker"].strip().split(", ") == list(layers_of_a_worker())
    assert re.search(r"^  landlock +read a file +blocked$", blocks["attacks"], re.MULTILINE)
    assert tuple(blocks["every worker may read"].split()) == read_list()
    assert f"\n\n{count} attacks: " in result.out


def test_json_has_the_same_content() -> None:
    data = json.loads(command("isolation", "check", "--json", make_engine=None).out)

    assert [*data] == ["ok", "layers", "worker", "attacks", "read", "read_with_network"]
    assert data["ok"] is True
    assert data["layers"] == [{"layer": name, "available": True, "reason": ""} for name in available()]
    assert data["attacks"][0] == {
        "layer": "rlimits",
        "attack": "allocate more memory",
        "outcome": "blocked",
        "reason": "",
    }
    assert {*data["worker"]} <= {*available()}
    assert {"landlock", "seccomp", "rlimits"} <= {*data["worker"]}
    assert data["read"] == [*read_list()]
    assert {*data["read"], *data["read_with_network"]} == {*read_list(network=True)}


def test_attack_that_is_not_blocked_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing layer is reported with its reason, by doctor too, and does not fail the command."""
    reasons = {**dict.fromkeys(confinement.ATTEMPTS, ""), "userns": "no", "ipcns": "unshare: Operation not permitted"}
    monkeypatch.setattr(confinement, "_available", lambda: reasons)
    monkeypatch.setitem(CONFINEMENTS, "netns", lambda: None)
    result = command("isolation", "check", make_engine=None)
    finding = doctor()["isolation"]["confinement"]

    assert result.code == 1
    assert re.search(r"\n  ipcns +not available +unshare: Operation not permitted\n", result.out)
    assert re.search(r"\n  ipcns +attach shared memory +not available +unshare: Operation not\b", result.out)
    assert re.search(r"\n  netns +send by UDP +not blocked\n", result.out)
    assert re.search(r", 3 not blocked, \d+ not provable here, 1 not available\n$", result.out)
    assert (finding["state"], finding["fix"]) == ("optional", "neuroscript isolation check")
    assert finding["text"] == "userns, ipcns are not available here (no)"


def test_other_systems_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuroscript.cli.isolation.command.LIBC", None)
    data = json.loads(command("isolation", "check", "--json", make_engine=None).out)

    assert (data["ok"], data["attacks"]) == (True, [])


def test_action_is_required() -> None:
    result = command("isolation", make_engine=None)

    assert (result.code, result.out) == (2, "")
    assert result.err == "neuroscript: expected an action: check (see neuroscript isolation --help)\n"
