"""Near-duplicates on-line and afterwards: decisions beside onion's over exact sets, cost and memory.

    python -m benchmarks.dedup [--quick] [--data ../shared/data]

Texts: the kept paragraphs of the bundled miniature web (translated documentation, with
much that repeats), with --data the gold texts of pages/ behind them; then made text to
fill the filter.  A decision is about one paragraph.  Afterwards is ``scrapy dedup``: its
decisions on the same texts beside onion's, and its cost on a made corpus of 10^6 documents,
of which 22 % of the paragraphs are near-copies of one of the ten thousand before them: by
one command, and in 8 parts and 4 ranges, two tasks at a time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, arguments, result, table
from spiderling.base.files import zstd
from spiderling.cluster.launcher import with_parent
from spiderling.corpus.duplicates import (
    MAX_SEEN_SHARE,
    Keys,
    NearDuplicates,
    ShingleFilter,
)
from spiderling.corpus.segments import Source, read_documents, stored_documents
from spiderling.export.deduplication import Deduplication, Rule
from spiderling.export.export import ExportPlan
from spiderling.export.sources import corpus_of
from spiderling.languages import available, load
from spiderling.text import TextOptions, process
from spiderling.text.fingerprints import Shingles, shingles
from spiderling.text.prevertical import render
from webs.recorded import read_pages

CODES = ("cs", "sk", "pl", "de", "en")
MADE = 20_000_000
AFTERWARDS = 1_000_000
PARTS, RANGES = 8, 4
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
    with zstd.open(path, "rt", encoding="utf-8") as lines:
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
        seen.remember(Keys.of(rng.integers(0, 1 << 64, 100_000, np.uint64)))
    return seen


# -- afterwards


def paragraphs(number: int):
    """Made paragraphs of 46 words until they have *number* shingles of 7."""
    rng, earlier = np.random.default_rng(3), []
    vocabulary = np.array([f"{'bcdfghjklmnprstv'[n % 16]}{n:x}" for n in range(200_000)])
    for _ in range(number // 40):
        if len(earlier) > 100 and rng.random() < 0.22:
            words = earlier[rng.integers(len(earlier))].copy()
            words[rng.integers(0, 46, 2)] = rng.integers(0, 200_000, 2)
        else:
            words = (200_000 ** rng.random(46)).astype(np.int64)  # Zipf's law
            earlier.append(words) if len(earlier) < 10_000 else earlier.__setitem__(rng.integers(10_000), words)
        yield " ".join(vocabulary[words])


def made_corpus(directory: Path, number: int) -> list[Path]:
    """So many documents of two paragraphs, in PARTS files."""
    texts = paragraphs(80 * number)
    paths = [directory / f"in-{part}.prevert.zst" for part in range(PARTS)]
    for path in paths:
        with zstd.open(path, "wb", level=1) as packed:
            for id_ in range(number // PARTS):
                packed.write(
                    render({"id": f"{id_:x}", "words": "92"}, [(text, "") for text in islice(texts, 2)]).encode()
                )
    return paths


def waited_for(run: subprocess.Popen, work: Path) -> tuple[float, float, int]:
    """CPU seconds and peak MB of a process, and the most bytes in *work* meanwhile."""
    disk = 0
    while not (ended := os.wait4(run.pid, os.WNOHANG))[0]:
        time.sleep(0.2)
        with suppress(FileNotFoundError):
            disk = max(disk, sum(file.stat().st_size for file in work.rglob("*") if "work" in str(file)))
    if ended[1]:
        sys.exit("scrapy dedup failed")
    return ended[2].ru_utime + ended[2].ru_stime, ended[2].ru_maxrss / 1e3, disk


def command(*arguments: object) -> subprocess.Popen:
    words = [sys.executable, "-m", "scrapy", "dedup", *map(str, arguments), "--memory", "1G"]
    return subprocess.Popen(words, cwd=ROOT, preexec_fn=with_parent(signal.SIGTERM), stdout=subprocess.DEVNULL)


def afterwards(number: int) -> dict[str, float]:
    """``scrapy dedup`` over a made corpus, by one command and in parts: differing documents, time, memory and disk."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        sources, out, work = made_corpus(place, number), place / "out.prevert", place / "work"
        begin = time.monotonic()
        cpu, peak, disk = waited_for(command(*sources, "-o", out), place)
        wall = time.monotonic() - begin
        totals = json.loads(out.with_name(out.name + ".json").read_text())["dedup"]
        parts = [["--part", f"{n}/{PARTS}", "--temp", work] for n in range(PARTS)]
        steps = [
            [[source, *part] for source, part in zip(sources, parts, strict=True)],
            [["--range", f"{n}/{RANGES}", "--temp", work] for n in range(RANGES)],
            [
                [source, *part, "-o", place / f"{n}.prevert"]
                for n, (source, part) in enumerate(zip(sources, parts, strict=True))
            ],
        ]
        spent = []
        for tasks in steps:
            for two in zip(tasks[::2], tasks[1::2], strict=True):
                spent += [waited_for(run, work) for run in [command(*task) for task in two]]
        whole = stored_documents(Source(out))
        divided = (text for n in range(PARTS) for text in stored_documents(Source(place / f"{n}.prevert")))
        differences = sum(one != other for one, other in zip_longest(whole, divided))
    return {
        "documents": number, "shingles": totals["shingles"],
        "duplicates %": 100 * totals["duplicates"] / totals["units"],
        "wall s": wall, "CPU s": cpu, "peak MB": peak, "disk, bytes a shingle": disk / totals["shingles"],
        "in parts: differing documents": differences, "CPU s in parts": sum(one[0] for one in spent),
        "peak MB of a task": max(one[1] for one in spent),
        "bytes of disk a document": max(one[2] for one in spent) / number,
    }  # fmt: skip


def disagreeing(texts: list[list[str]], found: list[Shingles]) -> float:
    """Per cent of the decisions in which ``scrapy dedup`` differs from the exact set."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "real.prevert")
        path.write_text("".join(render({}, [(text, "") for text in one]) for one in texts), "utf-8")
        corpus = corpus_of([str(path)])
        run = Deduplication(Rule(mark=True), Path(directory, "work"), 2_000_000_000)
        run.collect(corpus)
        run.compare()
        run.write(corpus, ExportPlan(Path(directory, "out.prevert"), "prevertical"))
        marked = list(read_documents(Path(directory, "out.prevert")))
        ours = [[detail.get("dup") == "1" for detail in document.details] for document in marked]
    exact = ExactOnion()
    pairs = [
        pair for one, shingled in zip(ours, found, strict=True) for pair in zip(one, exact.judge(shingled), strict=True)
    ]
    return 100 * sum(one != other for one, other in pairs) / len(pairs)


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
        ("the same, beyond half of its bound: every fourth counts", sampling),
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
    strange = 100 * grown.seen(Keys.of(strangers)).mean()
    print(
        f"\n{len(texts)} documents, {tokens} words, {number} shingles: {1e9 * shingling / tokens:.0f} ns a word to make"
    )
    print(
        f"{made / 1e6:.0f} million shingles: {grown.bytes / 1e6:.0f} MB; of others {strange:.2f} % are taken for seen"
    )
    number_afterwards = AFTERWARDS // (50 if args.quick else 1)
    after = {"differ from onion %": disagreeing(texts, found)} | afterwards(number_afterwards)
    print("\nAfterwards, scrapy dedup with 1 GB:")
    table(list(after), [list(after.values())])
    result(
        afterwards_disagree=after["differ from onion %"] / 100,
        afterwards_shingles_per_s=round(after["shingles"] / after["wall s"]),
        afterwards_peak_mb=round(after["peak MB"]),
        differences=after["in parts: differing documents"],
        parts_peak_mb=round(after["peak MB of a task"]),
        parts_bytes_per_document=round(after["bytes of disk a document"]),
        disagree_with_exact=rates["empty at first"] / 100,
        us_per_token=round(1e6 * (shingling + rows[0][6] * number / 1e9) / tokens, 3),
        bytes_per_shingle=round(grown.bytes / made, 2),
        shingles_per_s=round(number / (rows[0][6] * number / 1e9)),
    )


if __name__ == "__main__":
    main()
