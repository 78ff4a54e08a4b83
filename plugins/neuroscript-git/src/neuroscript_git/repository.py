"""One open repository in the sandbox, in which git ignores the repository's own configuration.

git reads everything that can name a program (``config``, ``hooks``, ``info/attributes``) from the common directory of a
repository (``$GIT_COMMON_DIR``). Here that is a temporary directory, which only links to the objects and refs of the
repository. The repository's own configuration has no effect, even if another process changes it meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from neuroscript import Runtime, SandboxError, ToolFailed
from neuroscript_git import program, validation
from neuroscript_git.nesting import NestedRepositories, submodule_error
from neuroscript_git.settings import Settings, parse_settings

LOCAL_SECONDS: Final = 60.0
NETWORK_SECONDS: Final = 300.0

SHARED: Final = ("objects", "refs", "packed-refs", "logs", "shallow")
"""What git reads and writes in the repository itself, through links in the common directory."""

SUBMODULE: Final = "160000"
"""The mode of an index entry that is a submodule."""

MAGIC: Final = (("GIT_LITERAL_PATHSPECS", "0"),)
"""The variable that lets paths begin with pathspec magic, such as ``:(exclude,literal)``."""

DESCRIPTOR: Final = re.compile(r"/proc/self/fd/([0-9]+)")


@attrs.frozen
class IndexEntry:
    """One entry of the index: its mode, and its path as git prints it."""

    mode: str
    path: str


@attrs.frozen(eq=False)
class Repository:
    """A repository in which git can be run.

    Attributes:
        rt: The Runtime of the call.
        path: The directory, relative to the sandbox.
        folder: The same directory, by a name that follows it if it is moved.
        settings: The settings that git sees from its configuration.
        nesting: The nested repositories.
    """

    rt: Runtime
    path: str
    folder: str
    settings: Settings
    nesting: NestedRepositories
    _program: str
    _common: str
    _launch: program.Launch

    def run(
        self,
        *args: str,
        given: bytes = b"",
        statuses: Sequence[int] = (0,),
        protocol: str = "",
        more: Sequence[tuple[str, str]] = (),
    ) -> str:
        """Run git and return its output.

        Args:
            args: The command; values from a caller were checked, and come after ``--`` where possible.
            given: The standard input of git.
            statuses: Exit statuses that are not failures.
            protocol: The only allowed protocol; none by default.
            more: Further environment variables.

        Raises:
            ToolFailed: git.timeout, git.cancelled, git.too_large, or the error that git reports.
        """
        status, output, complaints = self._run_git(args, given, protocol, more)
        if status not in statuses:
            raise program.failure(complaints)
        return output.decode(errors="backslashreplace")

    def answer(self, *args: str, statuses: Sequence[int] = (0,)) -> tuple[int, str]:
        """Return the exit status and the output of git, which may be a list of all files.

        Bytes that are not UTF-8 are surrogates.

        Raises:
            ToolFailed: As `run` does.
        """
        status, output, complaints = self._run_git(args, b"", "", (), program.MAX_LIST_BYTES)
        if status not in statuses:
            raise program.failure(complaints)
        return status, output.decode(errors="surrogateescape")

    def listed(self, *args: str) -> list[str]:
        """Return the records of an output in which a NUL ends each record; see `answer`."""
        return self.answer(*args)[1].split("\0")[:-1]

    def tells(self, *args: str) -> str | None:
        """Return the stripped output of git, or None if it fails."""
        status, output, _ = self._run_git(args, b"", "", ())
        return output.decode(errors="backslashreplace").strip() if status == 0 else None

    def commit(self, text: str) -> str | None:
        """Return the hash of a commit, or None if it does not exist; the name must be checked."""
        return self.tells("rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")

    def known(self, text: str) -> str:
        """Return the hash of a commit that a caller named.

        Raises:
            ToolFailed: git.bad_ref, git.unknown_ref.
        """
        digest = self.commit(validation.commit(text))
        if digest is None:
            raise ToolFailed("unknown branch, tag or commit", code="git.unknown_ref", retry="model")
        return digest

    def branch(self) -> str | None:
        """Return the name of the current branch, or None if HEAD is detached."""
        return self.tells("symbolic-ref", "--quiet", "--short", "HEAD")

    def tracked(self) -> list[IndexEntry]:
        """Return the entries of the index."""
        return [IndexEntry(entry[:6], entry.partition("\t")[2]) for entry in self.listed("ls-files", "--stage", "-z")]

    def require_apart(self, commit: str) -> None:
        """Refuse to check out files into a nested repository.

        Args:
            commit: The commit or tree to check out.

        Raises:
            ToolFailed: git.submodule.
        """
        names = ("--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all")
        nesting = attrs.evolve(self.nesting, submodules=frozenset())  # files may replace an empty submodule
        if nesting.roots(self.listed("diff", *names, commit, "--")):
            raise submodule_error(
                "the commit has files at the path of a nested repository; move that repository away first"
            )

    def _run_git(
        self,
        args: Sequence[str],
        given: bytes,
        protocol: str,
        more: Sequence[tuple[str, str]],
        most: int = program.MAX_OUTPUT_BYTES,
    ) -> tuple[int, bytes, str]:
        place = {
            "GIT_DIR": ".git",
            "GIT_WORK_TREE": ".",
            "GIT_COMMON_DIR": self._common,
            "GIT_ALLOW_PROTOCOL": protocol,
        }
        env = program.environment(self.rt.sandbox_dir, self._common, {**place, **dict(more)})
        settings = (f"protocol.{protocol}.allow=always",) if protocol else ()
        descriptor = DESCRIPTOR.fullmatch(self.folder)
        return program.run(
            self.rt,
            program.words(self._program, settings, args),
            folder=self.folder,
            env=env,
            keep=(int(descriptor[1]),) if descriptor else (),
            given=given,
            seconds=NETWORK_SECONDS if protocol else LOCAL_SECONDS,
            launch=self._launch,
            most=most,
        )


def nul_terminated(records: Iterable[str]) -> bytes:
    """Return an input in which a NUL ends each record, from strings as `Repository.listed` returns them."""
    return "".join(f"{record}\0" for record in records).encode(errors="surrogateescape")


def printable(text: str) -> str:
    """Return a string with its surrogates, which are bytes that are not UTF-8, written as ``\\xff``."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


@contextmanager
def open_repository(rt: Runtime, path: str, *, written: Sequence[str] = (".git",)) -> Iterator[Repository]:
    """Check and open the repository in the directory *path*.

    Args:
        written: Where a confined git may write besides what the call names, relative to the repository.

    Raises:
        ToolFailed: git.no_repository, if the directory has no ``.git`` (parent directories are not searched);
            git.unsafe, if part of the repository is elsewhere; git.format, git.broken, git.missing, git.isolated.
    """
    here = path or "."
    _require_whole(rt, here)
    git = program.find_git(rt.sandbox_dir)
    with (
        rt.fs.pinned(here) as folder,
        _open_common(rt, git, [f"{folder}/{each}" for each in written]) as (common, launch),
    ):
        settings = _settings(rt, here, common, git, launch)
        _furnish(rt, here, Path(common), folder, settings)
        nesting = NestedRepositories(folder, frozenset())
        repository = Repository(rt, here, folder, settings, nesting, git, common, launch)
        tracked = repository.tracked()
        _require_inside(tracked)
        submodules = frozenset(each.path for each in tracked if each.mode == SUBMODULE)
        yield attrs.evolve(repository, nesting=NestedRepositories(folder, submodules))


@contextmanager
def _open_common(rt: Runtime, git: str, written: Sequence[str]) -> Iterator[tuple[str, program.Launch]]:
    """Provide an empty common directory, and what starts git."""
    with TemporaryDirectory(prefix="neuroscript-git-") as common:
        try:
            confined = program.confine(rt, git, (common, *written))
        except PermissionError:  # the worker of an isolated tool can read git, but none of the programs beside it
            text = "cannot be isolated; add it to exclude of isolation, and set programs = true there"
            raise ToolFailed(text, code="git.isolated", retry="host") from None
        with confined as launch:
            yield common, launch


def _require_whole(rt: Runtime, here: str) -> None:
    """Refuse repositories with parts elsewhere: submodules, worktrees, alternates, links of any kind."""
    try:
        entries = rt.fs.walk(f"{here}/.git/")
    except SandboxError as error:
        if error.code in ("sandbox.symlink", "sandbox.type", "sandbox.notdir"):
            raise unsafe_repository_error() from None
        if error.code == "sandbox.notfound":
            raise ToolFailed(
                "there is no repository in that directory", code="git.no_repository", retry="model"
            ) from None
        raise
    if any(each.kind not in ("file", "dir") or each.path.endswith("/objects/info/alternates") for each in entries):
        raise unsafe_repository_error()


def unsafe_repository_error() -> ToolFailed:
    """Return the error for a repository that refers to files outside of it."""
    text = "the repository refers to files outside of it or contains links"
    return ToolFailed(text, code="git.unsafe", retry="host")


def _settings(rt: Runtime, here: str, home: str, git: str, launch: program.Launch) -> Settings:
    """Return the safe settings of a configuration, which git parses from its standard input, without includes."""
    status, listed, _ = program.run(
        rt,
        program.words(git, (), ("config", "--file", "-", "--list", "-z", "--no-includes")),
        folder=home,
        env=program.environment(rt.sandbox_dir, home, {"GIT_DIR": f"{home}/none"}),
        keep=(),
        given=_read_bytes(rt, f"{here}/.git/config"),
        seconds=LOCAL_SECONDS,
        launch=launch,
    )
    if status != 0:
        raise ToolFailed("the configuration of the repository cannot be read", code="git.broken", retry="host")
    return parse_settings(listed.decode(errors="backslashreplace"))


def _read_bytes(rt: Runtime, path: str) -> bytes:
    with suppress(SandboxError):
        return rt.fs.read_bytes(path)
    return b""


def _furnish(rt: Runtime, here: str, common: Path, folder: str, settings: Settings) -> None:
    (common / "config").write_text(settings.text(), encoding="utf-8")
    (common / "info").mkdir()
    (common / "info" / "exclude").write_bytes(_read_bytes(rt, f"{here}/.git/info/exclude"))
    for name in SHARED:
        if name != "shallow" or rt.fs.exists(f"{here}/.git/{name}"):
            (common / name).symlink_to(f"{folder}/.git/{name}")


def _require_inside(tracked: Iterable[IndexEntry]) -> None:
    """Refuse an index that names files outside the repository, because git would open them."""
    for each in tracked:
        names = each.path.split("/")
        if each.path.startswith("/") or not validation.is_inside(names) or "" in names:
            raise unsafe_repository_error()
