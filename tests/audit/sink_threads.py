"""Threads and processes that write records at the same time."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable


def wait_for_exit(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Return the exit code and the output of a process after its end."""
    written, _ = process.communicate(timeout=120)
    return process.returncode, written


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run a function in several threads at once, and wait for all of them."""
    threads = [threading.Thread(target=work, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
