"""The rules of the house that imports can break: what is pure stays pure, and calls go one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spiderling

PACKAGE = Path(spiderling.__file__).parent
PURE = ("frontier", "text", "simulation")
FRAMEWORK = {"scrapy", "twisted", "itemadapter", "itemloaders"}
ADAPTERS = (
    "addon",
    "checkpoint",
    "commands",
    "crawl",
    "extensions",
    "handler",
    "middlewares",
    "pipelines",
    "scheduler",
)
CLOCKS = {
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns",
    "time.process_time", "time.localtime", "time.gmtime", "time.sleep", "time.ctime", "time.asctime", "time.strftime",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
}  # fmt: skip


def modules(*packages: str) -> list[Path]:
    return sorted(path for name in packages for path in (PACKAGE / name).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under ``if TYPE_CHECKING:``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from at_run_time(node)


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(local name, full name) of everything that a module imports at run time."""
    for node in at_run_time(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                yield local, alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def imported_modules(tree: ast.AST) -> set[str]:
    names = {node.module or "" for node in at_run_time(tree) if isinstance(node, ast.ImportFrom)}
    return names | {a.name for node in at_run_time(tree) if isinstance(node, ast.Import) for a in node.names}


def clock_readings(tree: ast.AST) -> list[str]:
    """Names of clocks that a module mentions, however it imported them."""
    known = dict(imports(tree))
    found = [full for full in known.values() if full in CLOCKS]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts, value = [node.attr], node.value
            while isinstance(value, ast.Attribute):
                parts.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name):
                full = ".".join([known.get(value.id, value.id), *reversed(parts)])
                found += [full] if full in CLOCKS else []
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.time()", True),
        ("import time as t\nt.monotonic()", True),
        ("from time import perf_counter as p", True),
        ("import datetime\ndatetime.datetime.now()", True),
        ("from datetime import datetime, timezone\nx = datetime.now", True),
        ("import datetime as d\nd.date.today()", True),
        ("def f(time):\n    return time.started", False),
        ("from datetime import datetime\ndatetime.fromisoformat('x')", False),
    ],
)
def test_the_clock_finder_finds_clocks(source: str, found: bool) -> None:
    assert bool(clock_readings(ast.parse(source))) is found


@pytest.mark.parametrize("path", modules(*PURE), ids=name_of)
def test_pure_packages_import_no_framework(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    assert not {name for name in imported_modules(tree) if name.partition(".")[0] in FRAMEWORK}
    assert not {name for name in imported_modules(tree) if name.startswith(tuple(f"spiderling.{a}" for a in ADAPTERS))}


@pytest.mark.parametrize("path", modules("frontier", "text"), ids=name_of)
def test_frontier_and_text_read_no_clock(path: Path) -> None:
    assert clock_readings(ast.parse(path.read_bytes())) == []


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in modules("frontier")
        if path.name not in ("store.py", "reading.py", "soundness.py", "statefile.py")
    ],
    ids=name_of,
)
def test_frontier_does_no_io_but_in_the_store_and_its_reading(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    io = {"asyncio", "io", "logging", "os", "pathlib", "random", "select", "shutil", "socket", "sqlite3", "subprocess"}
    allowed = {"random"} if path.name == "draws.py" else set()  # with a seed; test_draws.py asks for the same twice
    assert not {name.partition(".")[0] for name in imported_modules(tree)} & io - allowed
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert not calls & {"open", "print", "input"}


def test_pure_packages_work_where_the_framework_is_missing() -> None:
    names = [
        "spiderling." + name_of(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for path in modules(*PURE)
    ]
    assert len(names) > 20
    script = f"""
import importlib, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(FRAMEWORK)!r}:
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Blocked())
for name in {names!r}:
    importlib.import_module(name)
print([name for name in sys.modules if name.partition(".")[0] in {[*sorted(FRAMEWORK), "requests"]!r}])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]", "and each text worker would load an HTTP client for nothing"
