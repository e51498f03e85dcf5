"""docs/architecture.svg: the packages on their floors, and which of them imports which.

``python -m docs.architecture`` draws it anew from the imports of the code; floors and rules are those of
tests/test_imports.py.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from tests.test_imports import FLOOR, FLOORS, FRAMEWORK, PACKAGE, PURE, every_import, imported_modules

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/architecture.svg"
WIDTH = 980
LEFT = 20
HEIGHT_OF_BOX = 50
GAP = 46
TOP = 60
WIDTH_OF_BOX = 268
STEP = (WIDTH - 2 * LEFT) / 3
LANES = (LEFT + STEP, LEFT + 2 * STEP)
"""Between the columns of boxes."""
COLUMNS = {1: (1,), 2: (0, 2), 3: (0, 1, 2)}
"""By the number of packages on a floor."""
TEXT = "#222"
LINE = "#8a949e"
PURE_FILL = "#d9f0e1"
SCRAPY_FILL = "#fbe6cc"
PLAIN_FILL = "#e8ecf0"
LEGEND = (
    (PURE_FILL, "pure: no Scrapy, no clock"),
    (PLAIN_FILL, "no Scrapy"),
    (SCRAPY_FILL, "uses Scrapy or Twisted"),
)
WORDS = {
    "base": "options, reasons, URLs, addresses, outcome",
    "text": "bytes of a page to clean text",
    "frontier": "which URL is next, which host is left alone",
    "fetch": "HTTP client, resolver, TLS",
    "languages": "models and seeds of languages",
    "corpus": "segments, links, WARC, near-duplicates",
    "archives": "WARC files that are read",
    "jobdir": "inspect, check, card, migration",
    "workers": "processes that run text/",
    "training": "models made from text",
    "crawl": "one crawl: options, checkpoint, budgets",
    "export": "the corpus in other formats",
    "library": "extract, identify, read, dedup",
    "cluster": "messages between shards of one crawl",
    "engine": "scheduler, download handler",
    "live": "live page",
    "reporting": "the report",
    "middlewares": "politeness, limits, robots.txt",
    "pipelines": "verdicts on a page, the document",
    "extensions": "budgets, progress, control.yaml",
    "spiders": "the web, or archives",
    "cli": "what the commands share",
    "seeding": "finding seeds",
    "commands": "what a user types",
}


def main() -> None:
    PICTURE.write_text(picture(), encoding="utf-8")


@cache
def modules_of(package: str) -> tuple[ast.Module, ...]:
    """The syntax trees of *package*, which may be one module."""
    paths = sorted((PACKAGE / package).rglob("*.py")) or [PACKAGE / f"{package}.py"]
    return tuple(ast.parse(path.read_bytes()) for path in paths)


def used_by(package: str) -> set[str]:
    """The packages that *package* imports from, in whatever way."""
    names = {name.split(".")[1] for tree in modules_of(package) for name in every_import(tree) if "." in name}
    return (names & FLOOR.keys()) - {package}


def reduced(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """*uses* without what follows from the rest: of a -> b -> c the arrow a -> c is left out."""
    reached: dict[str, set[str]] = {}
    for package in sorted(uses, key=FLOOR.__getitem__):
        reached[package] = uses[package].union(*(reached[used] for used in uses[package]))
    return {package: used - set().union(*(reached[other] for other in used)) for package, used in uses.items()}


def picture() -> str:
    """The drawing."""
    arrows = reduced({package: used_by(package) for package in FLOOR})
    places = places_of(arrows)
    pairs = [(upper, lower) for upper in places for lower in sorted(arrows[upper])]
    height = TOP + len(FLOORS) * (HEIGHT_OF_BOX + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12" fill="{TEXT}">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
        *_legend(),
        *(_arrow(places[upper], places[lower], shift) for shift, (upper, lower) in enumerate(pairs)),
        *(_box(package, x, y) for package, (x, y) in places.items()),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def places_of(arrows: dict[str, set[str]]) -> dict[str, tuple[float, float]]:
    """Middle and top of each package's box: below those that use it, so that few arrows cross."""
    places: dict[str, tuple[float, float]] = {}
    for row, floor in enumerate(reversed(FLOORS)):

        def above(package: str) -> float:
            users = [x for user, (x, _) in places.items() if package in arrows[user]]
            return sum(users) / len(users) if users else WIDTH / 2

        for column, package in zip(COLUMNS[len(floor)], sorted(sorted(floor), key=above), strict=True):
            places[package] = (LEFT + STEP * (column + 0.5), float(TOP + row * (HEIGHT_OF_BOX + GAP)))
    return places


def _legend() -> list[str]:
    parts = []
    x = LEFT
    for colour, words in LEGEND:
        parts += [
            f'<rect x="{x}" y="16" width="18" height="14" rx="3" fill="{colour}" stroke="{LINE}"/>',
            f'<text x="{x + 26}" y="28">{escape(words)}</text>',
        ]
        x += 240
    parts.append(f'<text x="{x}" y="28">arrow: imports from</text>')
    return parts


def _arrow(upper: tuple[float, float], lower: tuple[float, float], shift: int) -> str:
    """From the bottom of one box to the top of another; a long one goes down between the columns."""
    (x, top), (to_x, to_y) = upper, lower
    y = top + HEIGHT_OF_BOX
    if to_y - y <= GAP:
        path = f"M{x:.0f} {y:.0f}{_curve(x, y, to_x, to_y - 6)}"
    else:
        lane = min(LANES, key=lambda lane: abs(lane - (x + to_x) / 2)) + 4 * (shift % 5 - 2)
        path = f"M{x:.0f} {y:.0f}{_curve(x, y, lane, y + GAP)}L{lane:.0f} {to_y - GAP:.0f}"
        path += _curve(lane, to_y - GAP, to_x, to_y - 6)
    head = f"M{to_x - 4:.0f} {to_y - 7:.0f}L{to_x:.0f} {to_y:.0f}L{to_x + 4:.0f} {to_y - 7:.0f}Z"
    return f'<path d="{path}" fill="none" stroke="{LINE}"/><path d="{head}" fill="{LINE}"/>'


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    bend = (to_y - y) / 2
    return f"C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}"


def _box(package: str, x: float, y: float) -> str:
    left = x - WIDTH_OF_BOX / 2
    return (
        f'<rect x="{left:.0f}" y="{y:.0f}" width="{WIDTH_OF_BOX}" height="{HEIGHT_OF_BOX}" rx="6" '
        f'fill="{_colour(package)}" stroke="{LINE}"/>'
        f'<text x="{x:.0f}" y="{y + 20:.0f}" text-anchor="middle" font-weight="bold">{package}/</text>'
        f'<text x="{x:.0f}" y="{y + 38:.0f}" text-anchor="middle" font-size="11">{escape(WORDS[package])}</text>'
    )


def _colour(package: str) -> str:
    if package in PURE:
        return PURE_FILL
    names = {name.partition(".")[0] for tree in modules_of(package) for name in imported_modules(tree)}
    return SCRAPY_FILL if names & FRAMEWORK else PLAIN_FILL


if __name__ == "__main__":
    main()
