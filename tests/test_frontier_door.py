"""The frontier has one door: outside its package, only ``Frontier`` is used, and of its parts what is named here."""

from __future__ import annotations

import ast
from pathlib import Path

import spiderling
from spiderling.frontier import Frontier
from tests.sources import sinners, tree_of

PACKAGE = Path(spiderling.__file__).parent
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if "frontier" not in path.relative_to(PACKAGE).parts)
HANDED_OVER = {"archive_pages", "reachability", "sitemaps", "recrawl"}
"""Parts that a user of their own gets as a whole, and keeps under a name of his own."""
PARTS = {
    "ledger": {
        "balance", "counts", "ends", "in_transit", "languages", "refused_links", "totals", "waiting", "yield_rate",
    },
    "host_states": {"at_work", "hosts_by_state"},
    "intervals": {"answered", "connect_in", "host_s", "ip_s", "slot_granted"},
    "schedule": {"awaited", "change_intervals"},
    "next_fetch": {"examined", "shunned"},
    "robots": {"licences", "statements_of"},
    "strategy": {"weight"},
    "host_closing": {"block_where", "judge_by", "reopen_host", "rule", "take_reopened"},
    "recrawl": {"begin", "columns", "goes_on", "is_on", "step", "stop", "sweep_s"},
    "probes": {"begin", "due_in", "end", "may_ask", "started"},
}  # fmt: skip
"""Parts that the door gives as a whole -> what of each is for everybody."""
DOOR = {name for name in vars(Frontier) if not name.startswith("_")} | HANDED_OVER | PARTS.keys()


def is_frontier(node: ast.AST) -> bool:
    """Whether an expression is called a frontier: ``frontier``, ``crawl.frontier``, ``self._frontier``."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lstrip("_") == "frontier"


def deeper(tree: ast.AST) -> list[str]:
    """What is used of a frontier beside its door, or of a part that the door gives, with the line."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        inner = node.value
        if is_frontier(inner) and node.attr not in DOOR and not is_module(tree, inner):
            found.append(f"line {node.lineno}: frontier.{node.attr}")
        elif isinstance(inner, ast.Attribute) and is_frontier(inner.value) and not is_open(inner.attr, node.attr):
            found.append(f"line {node.lineno}: frontier.{inner.attr}.{node.attr}")
    return found


def is_open(part: str, name: str) -> bool:
    return name in PARTS.get(part, ())


def is_module(tree: ast.AST, node: ast.AST) -> bool:
    """Whether *node* is the package: ``spiderling.frontier``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "spiderling"


def test_nobody_goes_past_the_frontiers_door() -> None:
    past = sinners(OUTSIDE, lambda path: deeper(tree_of(path)))
    assert past == {}, "give Frontier a method for it, or use one of those it has"


CASES = [
    ("crawl.frontier.ledger.note_end", True),
    ("crawl.frontier.ledger.end_waiting(reason)", True),
    ("frontier.hosts.get('a.cz')", True),
    ("crawl.frontier.url_states", True),
    ("crawl.frontier.reachability.summary(1)", True),
    ("frontier.take.x", True),
    ("Offline(crawl.frontier.reachability)", False),
    ("crawl.frontier.ledger.totals['pages']", False),
    ("crawl.frontier.ledger.ends.most_common(2)", False),
    ("crawl.frontier.ledger.balance.waiting", False),
    ("frontier.take(now).host.name", False),
    ("import spiderling.frontier.robots", False),
]


def test_a_way_past_the_door_is_found() -> None:
    assert [source for source, is_deeper in CASES if bool(deeper(ast.parse(source))) is not is_deeper] == []


SCRAPY_SIDE = [
    *(path for name in ("engine", "extensions", "spiders") for path in sorted((PACKAGE / name).rglob("*.py"))),
    *(PACKAGE / f"{name}.py" for name in ("addon", "items", "middlewares", "pipelines")),
]


def behind_the_door(path: Path) -> list[str]:
    """The modules of the frontier that are imported from its inside."""
    names = [node.module or "" for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
    return [name for name in names if name.startswith("spiderling.frontier.")]


def test_scrapys_components_import_the_frontier_alone() -> None:
    assert sinners(SCRAPY_SIDE, behind_the_door) == {}, "let spiderling/frontier/__init__.py name it"
