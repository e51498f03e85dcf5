"""The rules of the house that imports can break: what is pure stays pure, and calls go one way; ruff bans clocks."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spiderling
from tests.sources import sinners, tree_of

PACKAGE = Path(spiderling.__file__).parent
PURE = ("frontier", "text")
FRAMEWORK = {"scrapy", "twisted", "itemadapter", "itemloaders"}
FLOORS = (
    ("base",),
    ("text", "frontier", "fetch"),
    ("languages", "corpus", "archives"),
    ("jobdir", "workers", "training"),
    ("crawl", "export"),
    ("cluster", "reporting", "library"),
    ("engine", "live"),
    ("middlewares", "pipelines", "extensions"),
    ("spiders",),
    ("cli",),
    ("seeding",),
    ("commands",),
)
"""Packages, and two modules beside them, from the lowest to the highest.

Each imports only from those below it, and none from its own floor."""
FLOOR = {package: number for number, floor in enumerate(FLOORS) for package in floor}
BESIDE = {path.parent.name for path in PACKAGE.parent.glob("*/*.py")} - {PACKAGE.name}
"""What the wheel leaves out, such as the simulator: the package imports nothing of it."""
FOR_ALL = ("spiderling.__version__", "spiderling.signals")  # what the root has and imports nothing of ours
FOR_COMPONENTS = "spiderling.items"
"""PageItem, which what Scrapy runs and what FEEDS write pass on; from the floor of ``export`` on."""
READS_FILES = ("sqlite.py", "state_file.py")  # modules of frontier/storage/
CLUSTER = ("spiderling.cluster", "redis")  # what only a crawl of shards loads
PROTOCOL = ("content", "exchange")  # modules of cluster/ that are tried on virtual time


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


def imported_modules(tree: ast.AST) -> set[str]:
    names = {node.module or "" for node in at_run_time(tree) if isinstance(node, ast.ImportFrom)}
    return names | {a.name for node in at_run_time(tree) if isinstance(node, ast.Import) for a in node.names}


def frameworks(path: Path) -> set[str]:
    return {name for name in imported_modules(tree_of(path)) if name.partition(".")[0] in FRAMEWORK}


def test_pure_packages_import_no_framework() -> None:
    assert sinners(modules(*PURE), frameworks) == {}


def io_of(path: Path) -> set[str]:
    """What does I/O in a module of the frontier, beside those that read files."""
    tree = tree_of(path)
    io = {"asyncio", "io", "logging", "os", "pathlib", "random", "select", "shutil", "socket", "sqlite3", "subprocess"}
    allowed = {"random"} if path.name == "strategy.py" else set()  # with a seed, as test_strategies.py tries
    imported = {name.partition(".")[0] for name in imported_modules(tree)} & io - allowed
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return imported | calls & {"open", "print", "input"}


def test_frontier_does_no_io_but_in_the_store_and_its_reading() -> None:
    assert sinners([path for path in modules("frontier") if path.name not in READS_FILES], io_of) == {}


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
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]", "and each text worker would load an HTTP client for nothing"


def test_the_protocol_between_shards_does_no_io() -> None:
    io = {"asyncio", "io", "logging", "os", "pathlib", "random", "redis", "secrets", "socket", "sqlite3", "subprocess"}

    def impure(path: Path) -> list[str]:
        imported = {module.partition(".")[0] for module in imported_modules(tree_of(path))}
        return sorted(imported & (io | FRAMEWORK))

    assert sinners([PACKAGE / f"cluster/{name}.py" for name in PROTOCOL], impure) == {}


@pytest.mark.slow
def test_a_whole_crawl_without_shards_loads_nothing_of_a_cluster(tmp_path: Path) -> None:
    script = f"""
import atexit, sys
atexit.register(lambda: print("loaded:", [name for name in sys.modules if name.startswith({CLUSTER!r})]))
from scrapy.cmdline import execute
execute(["scrapy", "crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://127.0.0.1/",
         "-s", {f"JOBDIR={tmp_path}/cs"!r}, "-s", "SPIDERLING_CONTACT=test@corpus.internal"])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False)
    assert "is finished" in run.stderr, "the crawl has run, though its one address is forbidden"
    assert run.stdout.splitlines()[-1] == "loaded: []", run.stdout


def every_import(tree: ast.AST) -> set[str]:
    """Full names of all of the checkout that is imported, inside functions and ``if TYPE_CHECKING:`` as well."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] in {PACKAGE.name, *BESIDE}}


def upward(package: str, names: set[str]) -> list[str]:
    """Those of *names* that a module of *package*, '' for the root, must not import."""
    wrong = []
    for name in sorted(names):
        top, first, *_ = [*name.split("."), ""]
        if top in BESIDE:
            is_wrong = True
        elif first in FLOOR:
            is_wrong = package in FLOOR and first != package and FLOOR[first] >= FLOOR[package]
        elif name.startswith(FOR_ALL):
            is_wrong = False
        elif name.startswith(FOR_COMPONENTS):
            is_wrong = package in FLOOR and FLOOR[package] < FLOOR["export"]
        else:
            is_wrong = package in FLOOR
        wrong += [name] if is_wrong else []
    return wrong


def imports_upward(path: Path) -> list[str]:
    first, *inside = name_of(path).removesuffix(".py").split("/")
    package = first if first in FLOOR else ""
    assert package or not inside, "a new package needs a floor"
    return upward(package, every_import(tree_of(path)))


def test_imports_go_down_the_floors_only() -> None:
    assert {"simulator", "webs", "benchmarks"} <= BESIDE
    assert sinners(PACKAGE.rglob("*.py"), imports_upward) == {}


UPWARD_CASES = [
    ("base", "from spiderling.frontier import Frontier", True),
    ("text", "from spiderling.frontier.robots import Robots", True),
    ("frontier", "def f():\n    from spiderling.crawl.crawl import Crawl", True),
    ("corpus", "if TYPE_CHECKING:\n    import spiderling.jobdir.inspection", True),
    ("frontier", "from spiderling.items import PageItem", True),
    ("crawl", "from spiderling import addon", True),
    ("commands", "def f():\n    from simulator.comparison import compare", True),
    ("crawl", "from spiderling import __version__, signals", False),
    ("pipelines", "from spiderling.items import PageItem", False),
    ("commands", "from spiderling.export.formats import Parquet", False),
    ("frontier", "from spiderling.frontier.robots import Robots", False),
]


def test_an_import_upwards_is_found() -> None:
    wrong = [c for c in UPWARD_CASES if bool(upward(c[0], every_import(ast.parse(c[1])))) is not c[2]]
    assert wrong == []


@pytest.mark.parametrize("package", ["frontier", "text"])
def test_the_rooms_of_a_package_form_no_circle(package: str) -> None:
    """A room is a folder, or a module that stands beside the folders."""
    needs: dict[str, set[str]] = {}
    for path in modules(package):
        if path.name != "__init__.py":
            needs.setdefault(room_of(package, path), set()).update(rooms_used(package, path))
    while needs:
        free = {room for room, used in needs.items() if not used & (needs.keys() - {room})}
        assert free, f"each of {sorted(needs)} needs another of them"
        needs = {room: used for room, used in needs.items() if room not in free}


def room_of(package: str, path: Path) -> str:
    return path.relative_to(PACKAGE / package).parts[0].removesuffix(".py")


def rooms_used(package: str, path: Path) -> set[str]:
    prefix = f"spiderling.{package}."
    names = {name for name in every_import(tree_of(path)) if name.startswith(prefix)}
    return {name.removeprefix(prefix).partition(".")[0] for name in names}
