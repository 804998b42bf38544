"""Modules that a library loads and nobody uses are loaded when somebody does; each case in a process of its own."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rag_pipeline.loading import load_in_background, loaded_for_good

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library that imports two heavy modules at its top, and uses them in a function each."""
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text("name = 'heavy'\n")
    (tmp_path / "heavy" / "inner.py").write_text("def answer():\n    return 42\n")
    (tmp_path / "library.py").write_text(
        "import heavy as h\nfrom heavy import inner\n"
        "def name():\n    return h.name\n"
        "def answer():\n    return inner.answer()\n"
    )
    return tmp_path


def run(code: str, library: Path) -> str:
    """What a new process prints that has postponed both modules while it loaded the library."""
    before = (
        "import sys; from rag_pipeline.loading import postponed\n"
        "with postponed('heavy', 'heavy.inner'):\n    import library\n"
    )
    env = {"PYTHONPATH": f"{CHECKOUT}:{library}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", before + code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_what_nobody_uses_is_never_loaded(library):
    assert run("print([name for name in sys.modules if name.startswith('heavy')])", library) == "[]"


def test_what_the_library_uses_is_loaded_then(library):
    assert run("print(library.name(), library.answer(), 'heavy.inner' in sys.modules)", library) == "heavy 42 True"


def test_everybody_else_gets_the_real_module(library):
    code = "import heavy.inner; print(heavy.inner.__file__.endswith('inner.py'), heavy.inner.answer())"
    assert run(code, library) == "True 42"


def test_a_module_that_is_there_already_stays(library):
    code = (
        "import heavy\nwith postponed('heavy', 'heavy.inner'):\n    assert sys.modules['heavy'] is heavy\n"
        "    from heavy import inner\nprint(inner.answer())"
    )
    assert run(code, library) == "42"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_afterwards_as_it_was(enabled):
    was_enabled = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ZeroDivisionError), loaded_for_good():
            assert not gc.isenabled()
            _ = 1 / 0
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_what_was_loaded_is_never_looked_at_again(library):
    code = (
        "import gc\nfrom rag_pipeline.loading import loaded_for_good\n"
        "with loaded_for_good():\n    import json.tool as made\n"
        "looked_at = any(one is vars(made) for one in gc.get_objects())\nprint(looked_at, gc.get_freeze_count() > 0)"
    )
    assert run(code, library) == "False True"


def test_what_fails_to_load_beside_other_work_is_no_concern_of_that_work_and_the_rest_is_loaded():
    tried: list[str] = []
    loaded = threading.Event()

    def fails() -> None:
        tried.append(threading.current_thread().name)
        raise ImportError("not installed")

    load_in_background(fails, loaded.set)
    assert loaded.wait(30)
    assert tried == ["loading"]


def test_great_expectations_loaded_beside_other_work_leaves_the_modules_of_others_alone():
    code = (
        "import sys, threading\nfrom rag_pipeline.loading import load_in_background\n"
        "from rag_pipeline.quality import judging\n"
        "done = threading.Event(); load_in_background(judging.ready, done.set)\n"
        "while not done.wait(0.005):\n"
        "    found = sys.modules.get('scipy')\n"
        "    assert found is None or type(found).__name__ == 'module', found\n"
        "print(judging.ready()[0].__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert (done.stdout.strip(), done.returncode) == ("great_expectations", 0), done.stderr
