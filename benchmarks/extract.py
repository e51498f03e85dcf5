"""The library beside trafilatura: `spiderling.extract` and ``scrapy extract`` on the same pages.

    python -m benchmarks.extract [--quick] [--data DIR]

Each tool takes 500 pages in a process of its own, one by one: F1 of the words as in benchmarks/text.py, milliseconds
of CPU a page, memory, and seconds of CPU until the first page is done, for which models are loaded.
Then both command lines take the same files with two processes each.  Without --data the pages are the bundled web's, of
which no text is known.

**The bundled networks were fitted to pages of these sets**, so F1 here is better than on new pages; benchmarks/text.py
has it on hosts that the fit did not see.  What is compared fairly here is time and memory.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.common import arguments, result, table
from benchmarks.equality import bundled_pages
from benchmarks.text import RUNNING, Case, cases
from models.marked_pages import f1, score

PAGES = 500
QUICK_PAGES = 60
FIVE = "cs,sk,en,de,pl"
TOOLS = ("spiderling", f"spiderling {FIVE}", "trafilatura", "trafilatura fast")
_PROGRAM = Path(__file__).parent / "peers" / "extractor.py"
_IMPORTS = 5  # imports of which the fastest counts; chosen


def main() -> None:
    given = arguments(__doc__)
    marked = cases(given.data) if given.data else []
    number = QUICK_PAGES if given.quick else PAGES
    some = marked[:: max(1, len(marked) // number)][:number]
    bodies = [case.page.html.encode("utf-8", "replace") for case in some] or list(bundled_pages())[:number]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for count, body in enumerate(bodies):
            (place / f"{count:04d}.html").write_bytes(body)
        found = {tool: _run(tool, place) for tool in TOOLS if find_spec(tool.split()[0])}
        texts = {tool: one.pop("texts") for tool, one in found.items()}
        quality = {tool: dict(_quality(some, texts[tool])) for tool in found}
        commands = dict(_commands(place, len(bodies)))
    print(f"{len(bodies)} pages, {sum(map(len, bodies)) / len(bodies) / 1000:.0f} kB each")
    table(
        ["tool", "load, CPU s", "ms a page", "median ms", "MB", "F1 of the sets", "F1 of WCXB", "of its running text"],
        [
            [
                tool,
                one["load"],
                mean(one["ms"]),
                median(one["ms"]),
                one["mb"],
                *(quality[tool].values() if some else 3 * "-"),
            ]
            for tool, one in found.items()
        ],
    )
    table(["command", "s", "CPU s", "CPU ms a page"], [[name, *values] for name, values in commands.items()])
    milliseconds = import_ms()
    print(f"import spiderling: {milliseconds:.1f} ms")
    result(
        pages=len(bodies),
        import_ms=round(milliseconds, 1),
        load_s={tool: round(one["load"], 2) for tool, one in found.items()},
        ms={tool: round(mean(one["ms"]), 2) for tool, one in found.items()},
        mb={tool: round(one["mb"]) for tool, one in found.items()},
        **({"f1": {tool: {n: round(v, 3) for n, v in one.items()} for tool, one in quality.items()}} if some else {}),
        command_s={name: round(values[0], 1) for name, values in commands.items()},
    )


def _run(tool: str, place: Path) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, str(_PROGRAM), tool, str(place), out.name], check=True)
        found: dict[str, Any] = json.loads(Path(out.name).read_bytes())
        return found


def _quality(some: Sequence[Case], texts: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Mean F1 of the older sets, of WCXB, and of WCXB's four types of running text."""
    scores: dict[str, list[tuple[float, float, float]]] = {}
    stretches: dict[str, bool] = {}
    for number, case in enumerate(some):
        scores.setdefault(case.page.group, []).append(score([texts[f"{number:04d}"]], case.page))
        stretches[case.page.group] = case.page.text is None
    means = {group: f1(found, stretches[group]) for group, found in scores.items()}
    wcxb = {group: len(scores[group]) for group in means if group.startswith("wcxb")}
    running = {group: size for group, size in wcxb.items() if group.removeprefix("wcxb ") in RUNNING}
    yield "sets", mean([means[group] for group in means if group not in wcxb] or [0.0])
    for name, sizes in (("wcxb", wcxb), ("running", running)):
        yield name, sum(means[group] * size for group, size in sizes.items()) / max(1, sum(sizes.values()))


def _commands(place: Path, number: int) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Each command line over the files -> seconds, CPU seconds of all its processes, CPU milliseconds a page."""
    out = str(place / "out")
    files = sorted(map(str, place.glob("*.html")))
    ours = [sys.executable, "-m", "scrapy", "extract", "--parallel", "2", "--output-format", "json"]
    lines = {
        "scrapy extract FILES": [*ours, *files],
        f"scrapy extract --lang {FIVE} FILES": [*ours, "--lang", FIVE, *files],
        "trafilatura --input-dir": [
            sys.executable, "-m", "trafilatura.cli", "--parallel", "2", "--output-format", "json",
            "--input-dir", str(place), "--output-dir", out,
        ],
    }  # fmt: skip
    for name, line in lines.items():
        if find_spec(line[2].partition(".")[0]):
            before = _children_s()
            began = time.perf_counter()
            subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            took = time.perf_counter() - began
            used = _children_s() - before
            yield name, (took, used, 1000 * used / number)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def import_ms() -> float:
    """Milliseconds of ``import spiderling`` by ``-X importtime``."""
    times = []
    for _ in range(_IMPORTS):
        line = [sys.executable, "-X", "importtime", "-c", "import spiderling"]
        said = subprocess.run(line, capture_output=True, text=True, check=True).stderr
        last = re.search(r"\|\s+(\d+) \| spiderling$", said, re.MULTILINE)
        assert last is not None
        times.append(int(last[1]) / 1000)
    return min(times)


if __name__ == "__main__":
    main()
