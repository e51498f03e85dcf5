"""Near-duplicates on-line: the filter's decisions beside onion's over exact sets, its cost and its memory.

    python benchmarks/dedup.py [--quick] [--data ../shared/data]

Texts: the kept paragraphs of the bundled miniature web (translated documentation, with
much that repeats), with --data the gold texts of pages/ behind them; then made text to
fill the filter.  A decision is about one paragraph.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import numpy as np
import zstandard

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common import arguments, result, table  # noqa: E402
from spiderling.languages import available, load  # noqa: E402
from spiderling.nearduplicates import MAX_SEEN_SHARE, NearDuplicates  # noqa: E402
from spiderling.shinglefilter import ShingleFilter  # noqa: E402
from spiderling.simulation.recorded import read_pages  # noqa: E402
from spiderling.text import TextOptions, process  # noqa: E402
from spiderling.text.shingles import Shingles, shingles  # noqa: E402

CODES = ("cs", "sk", "pl", "de", "en")
MADE = 20_000_000
QUICK = 10
ROOMY = 1 << 30


def documents(args) -> list[list[str]]:
    found = list(recorded(args.quick))
    if args.data:
        found += gold(args.data / "pages" / "pages-dev.jsonl.zst")
    random.Random(1).shuffle(found)
    return found


def recorded(quick: bool):
    codes = [code for code in CODES if code in available()]
    models, options = load(codes), TextOptions(tuple(codes))
    sites = read_pages(ROOT / "examples" / "miniweb" / "pages.tar.zst")
    bodies = [body for pages in sites.values() for body in pages.values()]
    for body in bodies[:: 5 if quick else 1]:
        page = process(body, url="http://x.test/", http_charset=None, models=models, options=options)
        kept = [paragraph.text for paragraph in page.paragraphs if paragraph.kept]
        if kept:
            yield kept


def gold(path: Path):
    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["gold"]
            if isinstance(text, str):
                yield [paragraph for paragraph in text.split("\n") if paragraph.strip()]


class ExactOnion:
    """onion by a set of all shingles: what the filter is measured against."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def judge(self, found: Shingles) -> list[bool]:
        verdict, start, hashes = [], 0, found.hashes.tolist()
        for count in found.counts.tolist():
            part = hashes[start : start + count]
            duplicate = sum(hash_ in self._seen for hash_ in part) > MAX_SEEN_SHARE * count
            if not duplicate:
                self._seen.update(part)
            verdict.append(duplicate)
            start += count
        return verdict


def compared(near: NearDuplicates, texts: list[Shingles]) -> tuple[list[tuple[bool, bool, int]], float, float]:
    """(ours, exact, shingles) of each paragraph; CPU seconds of both."""
    exact, pairs, spent = ExactOnion(), [], [0.0, 0.0]
    for number, found in enumerate(texts):
        begin = time.process_time()
        ours = near.judge(number, found).tolist()
        near.settle(number, kept=True)
        middle = time.process_time()
        theirs = exact.judge(found)
        spent[0] += middle - begin
        spent[1] += time.process_time() - middle
        pairs += zip(ours, theirs, found.counts.tolist(), strict=True)
    return pairs, spent[0], spent[1]


def differing(pairs, least: int = 1) -> float:
    """Per cent of the decisions about paragraphs of at least so many shingles."""
    chosen = [(ours, theirs) for ours, theirs, count in pairs if count >= least]
    return 100 * sum(ours != theirs for ours, theirs in chosen) / max(1, len(chosen))


def filled(number: int, max_bytes: int) -> ShingleFilter:
    """A filter that has seen so many made shingles."""
    seen, rng = ShingleFilter(max_bytes), np.random.default_rng(1)
    for _ in range(number // 100_000):
        seen.add(rng.integers(0, 1 << 64, 100_000, np.uint64))
    return seen


def main() -> None:
    args = arguments(__doc__)
    texts = documents(args)
    tokens = sum(len(paragraph.split()) for text in texts for paragraph in text)
    begin = time.process_time()
    found = [shingles(text) for text in texts]
    shingling = time.process_time() - begin
    number = sum(len(one.hashes) for one in found)
    made = MADE // QUICK if args.quick else MADE
    rows, rates = [], {}
    sampling = filled(made, int(5 * made))
    for name, seen in (
        ("empty at first", ShingleFilter(ROOMY)),
        (f"behind {made / 1e6:.0f} million shingles", filled(made, ROOMY)),
        ("the same, in half of the memory it would take: every fourth", sampling),
    ):
        pairs, ours, theirs = compared(NearDuplicates(seen), found)
        rates[name] = differing(pairs)
        share = 100 * sum(pair[1] for pair in pairs) / len(pairs)
        rows.append(
            [name, len(pairs), share, rates[name], differing(pairs, 2), differing(pairs, 20),
             1e9 * ours / number, 1e9 * theirs / number, seen.bytes / 1e6]
        )  # fmt: skip
    head = ["filter", "paragraphs", "duplicates %", "differ %", "of 2 shingles and more %", "of 20 %",
            "ns a shingle", "exact set: ns", "MB"]  # fmt: skip
    table(head, rows)
    grown = filled(made, ROOMY)
    strangers = np.random.default_rng(2).integers(0, 1 << 64, 500_000, np.uint64)
    strange = 100 * grown.seen(strangers).mean()
    print(
        f"\n{len(texts)} documents, {tokens} words, {number} shingles: {1e9 * shingling / tokens:.0f} ns a word to make"
    )
    print(
        f"{made / 1e6:.0f} million shingles: {grown.bytes / 1e6:.0f} MB; of others {strange:.2f} % are taken for seen"
    )
    result(
        disagree_with_exact=rates["empty at first"] / 100,
        us_per_token=round(1e6 * (shingling + rows[0][6] * number / 1e9) / tokens, 3),
        bytes_per_shingle=round(grown.bytes / made, 2),
        shingles_per_s=round(number / (rows[0][6] * number / 1e9)),
    )


if __name__ == "__main__":
    main()
