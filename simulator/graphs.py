"""Recorded webs as the simulator needs them: the ``links/`` of an earlier crawl.

What was recorded is all there is: links to pages that are not in the record are left out,
and so are pages that the seeds do not lead to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulator.clairvoyants import breadth_first
from simulator.pages import CODES, Array, Hosts, Pages, PageWeb, sketches, stored_links
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize

if TYPE_CHECKING:
    from spiderling.corpus.links import LinkLine

_LATENCY_S = 0.4
"""Seconds from a request to the end of its answer, on every host (chosen)."""


class Node(NamedTuple):
    """One page of a record."""

    url: str
    body_bytes: int
    kept_bytes: int
    reason: Reason
    relevant: bool
    badness: float
    language: str
    """Language of a page that is not relevant; '' if unknown."""
    sketch: int | None
    """None: the page gets one of its own."""
    text_key: int


def of_crawl(title: str, lines: Iterable[LinkLine], language: str, seeds: Sequence[str] = ()) -> PageWeb:
    """The web that a crawl with SPIDERLING_LINKS=on has recorded; without *seeds* it begins at the page met first.

    A redirect stands for its target: links to it lead there.  Of pages with the same text a crawl keeps the first one
    that it meets, whichever the recorded crawl met first.
    """
    last = {line.url: line for line in lines}
    known = [line for line in last.values() if line.redirect_to is None]
    number = {line.url: at for at, line in enumerate(known)}
    keeps = {line.text_key: line for line in known if line.text_key and line.kept_bytes}
    twins = [keeps.get(line.text_key, line) if line.reason == Reason.DUPLICATE.value else line for line in known]
    nodes = [
        Node(
            line.url,
            line.downloaded_bytes,
            twin.kept_bytes,
            Reason.of(twin.reason),
            line.relevant,
            line.badness,
            line.page_language,
            line.sketch,
            line.text_key,
        )
        for line, twin in zip(known, twins, strict=True)
    ]

    def place(url: str) -> int:
        for _ in range(5):
            line = last.get(url)
            if line is None or line.redirect_to is None:
                break
            target = canonicalize(line.redirect_to)
            url = target.url if target else ""
        return number.get(url, -1)

    links = (
        (at, target, score, anchor, said)
        for at, line in enumerate(known)
        for url, score, anchor, said in zip(
            line.links, line.scores, line.anchors, line.said or [0] * len(line.links), strict=True
        )
        if (target := place(url)) >= 0
    )
    starts = [page for url in seeds if (home := canonicalize(url)) and (page := place(home.url)) >= 0]
    edges = np.fromiter((value for link in links for value in link), np.int64).reshape(-1, 5)
    return recorded_web(title, nodes, edges, language, starts or [0])


def recorded_web(title: str, nodes: Sequence[Node], edges: Array, language: str, seeds: Sequence[int]) -> PageWeb:
    """The web of *nodes* and *edges*.

    Columns of *edges*: source, target, score of the block, length of the text, what hreflang says.
    """
    names = [node.url.split("/", 3)[2] for node in nodes]
    order = np.argsort(np.array(names), kind="stable")
    place = np.argsort(order)
    starts, targets, cues = _by_source(place[edges[:, 0]], place[edges[:, 1]], edges[:, 2:], len(nodes))
    chosen = place[np.array(seeds, np.int64)]
    reached = np.sort(np.concatenate(breadth_first(starts, targets, chosen).levels))
    renumber = np.full(len(nodes), -1)
    renumber[reached] = np.arange(len(reached))
    inside = (renumber[np.repeat(np.arange(len(nodes)), np.diff(starts))] >= 0) & (renumber[targets] >= 0)
    sources = renumber[np.repeat(np.arange(len(nodes)), np.diff(starts))][inside]
    starts, targets, cues = _by_source(sources, renumber[targets][inside], cues[inside], len(reached))
    left = [nodes[at] for at in order[reached].tolist()]
    urls = [node.url for node in left]
    hosts, host = _hosts([names[at] for at in order[reached].tolist()])
    number = {url: at for at, url in enumerate(urls)}
    languages = language, *sorted({"", *(node.language for node in left)})
    return PageWeb(
        title,
        hosts,
        _pages(left, host, languages),
        stored_links(starts, targets, cues[:, 0]),
        languages,
        renumber[chosen].tolist(),
        urls.__getitem__,
        lambda url: number.get(url, -1),
        cues=lambda page: cues[starts[page] : starts[page + 1], 1:],
    )


def _by_source(sources: Array, targets: Array, cues: Array, pages: int) -> tuple[Array, Array, Array]:
    by = np.argsort(sources, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=pages))))
    return starts, targets[by].astype(np.int32), cues[by].astype(np.uint8)


def _hosts(names: Sequence[str]) -> tuple[Hosts, Array]:
    unique, first, host = np.unique(np.array(names), return_index=True, return_inverse=True)
    number = len(unique)
    latency = np.full(number, _LATENCY_S)
    ends = np.append(first, len(names))
    return Hosts(unique.tolist(), ends, latency, np.arange(number), np.zeros(number)), host.astype(np.int32)


def _pages(nodes: Sequence[Node], host: Array, languages: Sequence[str]) -> Pages:
    place = {code: at for at, code in enumerate(languages) if at}

    def column(values: Iterable[Any], kind: type) -> Array:
        return np.fromiter(values, kind, len(nodes))

    owns = sketches(np.arange(len(nodes))).tolist()
    codes = column((CODES.get(node.reason, CODES[Reason.BAD_QUALITY]) for node in nodes), np.uint8)
    return Pages(
        host,
        column((node.body_bytes for node in nodes), np.int32),
        column((node.kept_bytes for node in nodes), np.int32),
        codes,
        column((0 if node.relevant else place[node.language] for node in nodes), np.uint8),
        column((own if node.sketch is None else node.sketch for node, own in zip(nodes, owns, strict=True)), np.uint64),
        column((node.badness for node in nodes), np.float64),
        column((node.text_key for node in nodes), np.uint64),
    )
