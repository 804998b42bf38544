"""Several things at once: never more than there are places, no error stops another, Ctrl-C ends all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline.errors import TransientError
from rag_pipeline.remote.at_once import Outcome, Places, at_once, ended_by, locked, pause
from rag_pipeline.sources.git.command import run_git

_PATIENCE_S = 30


class Counted:
    """How many work at one time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, number: int) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.03)
        with self._lock:
            self.now -= 1
        return number * number


def places(folder: Path, count: int) -> Places:
    return Places(folder=folder / "places", count=count)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_never_more_at_once_than_there_are_places(tmp_path: Path, count: int) -> None:
    work = Counted()
    found = at_once(range(20), work, places=places(tmp_path, count))
    assert [outcome.result for outcome in found] == [n * n for n in range(20)]
    assert work.most == count


def test_two_who_name_the_same_folder_share_its_places(tmp_path: Path) -> None:
    work = Counted()
    others = [
        threading.Thread(target=at_once, args=(range(8), work), kwargs={"places": places(tmp_path, 3)})
        for _ in range(3)
    ]  # fmt: skip
    for other in others:
        other.start()
    for other in others:
        other.join(_PATIENCE_S)
    assert work.most == 3


def test_without_places_one_follows_the_other_in_the_calling_thread() -> None:
    seen: list[int] = []
    outcomes = at_once([1, 2], lambda _: threading.get_ident(), places=None, told=seen.append)
    assert {outcome.result for outcome in outcomes} == {threading.get_ident()}
    assert seen == [1, 2]


def test_a_slow_one_holds_up_nobody(tmp_path: Path) -> None:
    others_are_done = threading.Event()
    done: list[int] = []

    def work(number: int) -> int:
        if number == 0:
            assert others_are_done.wait(_PATIENCE_S)
        return number

    def told(count: int) -> None:
        done.append(count)
        if count == 9:
            others_are_done.set()

    found = at_once(range(10), work, places=places(tmp_path, 2), told=told)
    assert [outcome.result for outcome in found] == list(range(10))
    assert done[-1] == 10


def test_an_error_of_ours_stops_nobody_else(tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number % 3 == 0:
            raise TransientError(f"{number} is away")
        return number

    found = at_once(range(7), work, places=places(tmp_path, 4))
    assert [outcome.result for outcome in found] == [None, 1, 2, None, 4, 5, None]
    assert [str(outcome.error) for outcome in found if outcome.error] == ["0 is away", "3 is away", "6 is away"]
    assert found[1] == Outcome(thing=1, result=1)


def test_any_other_error_ends_all_and_is_raised(tmp_path: Path) -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ZeroDivisionError
        pause(_PATIENCE_S)

    with pytest.raises(ZeroDivisionError):
        at_once(range(50), work, places=places(tmp_path, 2))
    assert len(begun) < 50


def failing_beside(wait: Callable[[], None]) -> Callable[[int], None]:
    """Work on two things: the first waits, and the second fails once that has begun."""
    waits = threading.Event()

    def work(number: int) -> None:
        if number == 1:
            assert waits.wait(_PATIENCE_S)
            raise ZeroDivisionError
        waits.set()
        wait()

    return work


def test_a_git_that_waits_is_ended_with_the_work(tmp_path: Path) -> None:
    def wait() -> None:
        # It reads its own answer from a terminal that never says anything.
        done = run_git("-c", "alias.wait=!exec sleep 1000", "wait")
        assert done.returncode == -signal.SIGTERM

    with pytest.raises(ZeroDivisionError):
        at_once(range(2), failing_beside(wait), places=places(tmp_path, 2))


def test_what_is_to_end_the_work_is_forgotten_with_it(tmp_path: Path) -> None:
    def work(number: int) -> None:
        with ended_by(lambda: pytest.fail("this work is over")):
            pass
        if number == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        at_once(range(2), work, places=places(tmp_path, 2))


def test_who_waits_for_a_lock_ends_with_the_work(tmp_path: Path) -> None:
    def wait() -> None:
        with locked(tmp_path / "lock", timeout_s=3600):
            pytest.fail("somebody else holds it")

    with locked(tmp_path / "lock", timeout_s=0), pytest.raises(ZeroDivisionError):
        at_once(range(2), failing_beside(wait), places=places(tmp_path, 2))


def test_what_git_has_started_and_left_behind_holds_nobody_up(tmp_path: Path) -> None:
    """A child of git's that does not end with it has git's output open for as long as it lives."""
    left = tmp_path / "left"

    def work(number: int) -> None:
        if number:
            while not left.exists():
                time.sleep(0.01)
            raise ZeroDivisionError
        stays = f"echo $$ > {left}.part && mv {left}.part {left}; exec sleep 60"
        run_git("-c", f"alias.leave=!sh -c '{stays}' &", "leave")

    started = time.monotonic()
    try:
        with pytest.raises(ZeroDivisionError):
            at_once(range(2), work, places=places(tmp_path, 2))
        assert time.monotonic() - started < _PATIENCE_S
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


_INTERRUPTED = """
import sys, pathlib
from rag_pipeline.remote.at_once import Places, at_once
from rag_pipeline.sources.git.command import run_git

def work(number):
    (folder / str(number)).touch()
    run_git("-c", "alias.wait=!exec sleep 1000", "wait")

folder = pathlib.Path(sys.argv[1])
at_once(range(9), work, places=Places(folder=folder / "places", count=2))
"""


def test_ctrl_c_ends_everything_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, str(tmp_path)], stderr=subprocess.PIPE, start_new_session=True,
        # A shell that starts this in the background has told it to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        ends = time.monotonic() + _PATIENCE_S
        while len([path for path in tmp_path.iterdir() if path.name.isdigit()]) < 2 and time.monotonic() < ends:
            time.sleep(0.02)
        # To this process alone, as a runner does it; a terminal would also end its children.
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=_PATIENCE_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert b"KeyboardInterrupt" in errors
    assert {path.name for path in tmp_path.iterdir() if path.name.isdigit()} <= {"0", "1", "2"}
