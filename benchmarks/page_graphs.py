"""A graph of real pages as a web of the simulator: tables of pages and of links.

``nodes.tsv.zst``: a line for each page, with the columns host, path, bytes (of the body), cld2_lang and text_bytes by
the names in the first line.  The first page has the number 0.
``edges.tsv.zst``: for each page with links its number, a tab, the numbers of the pages that it links to, with blanks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simulator.graphs import Node, recorded_web
from simulator.pages import Array, PageWeb
from spiderling.base.files import zstd
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize

_MIN_TEXT_BYTES = 250  # bytes of text from which on a page is kept (chosen)
_RICHEST = 10  # hosts with most text, of which three are seeds (chosen)


def page_graph(directory: Path, language: str, seed: int) -> PageWeb:
    """The web of the tables in *directory*, for a crawl for *language*; the blocks of its links are not known.

    Crawls begin at the first pages of three of the ten hosts with most text, which *seed* draws, and at the page that
    links to most hosts.
    """
    head, *rows = (line.split("\t") for line in _lines(directory / "nodes.tsv.zst"))
    nodes = [_node(dict(zip(head, row, strict=True)), language) for row in rows]
    pairs = [line.split("\t") for line in _lines(directory / "edges.tsv.zst")]
    links = [np.array(targets.split(), np.int64) for _, targets in pairs]
    edges = np.zeros((sum(map(len, links)), 5), np.int64)
    edges[:, 0] = np.repeat([int(source) for source, _ in pairs], list(map(len, links)))
    edges[:, 1] = np.concatenate(links)
    return recorded_web(f"graph:{language}", nodes, edges, language, _seeds(nodes, edges, seed))


def _lines(path: Path) -> list[str]:
    return zstd.decompress(path.read_bytes()).decode(errors="replace").split("\n")[:-1]


def _node(row: dict[str, str], language: str) -> Node:
    url = f"http://{row['host']}{row['path']}"
    target = canonicalize(url)
    body_bytes, text_bytes = int(row["bytes"]), int(row["text_bytes"])
    is_wanted = row["cld2_lang"] == language
    kept_bytes = min(text_bytes, body_bytes) if is_wanted and text_bytes >= _MIN_TEXT_BYTES else 0
    reason = Reason.KEPT if kept_bytes else Reason.BOILERPLATE_ONLY if is_wanted else Reason.WRONG_LANGUAGE
    return Node(target.url if target else url, body_bytes, kept_bytes, reason, is_wanted, 0.0, "", None, 0)


def _seeds(nodes: list[Node], edges: Array, seed: int) -> list[int]:
    _, firsts, host = np.unique([node.url.split("/", 3)[2] for node in nodes], return_index=True, return_inverse=True)
    gains = np.bincount(host, [node.kept_bytes for node in nodes])
    richest = np.argsort(-gains, kind="stable")[: min(_RICHEST, np.count_nonzero(gains))]
    linked_hosts = np.unique(edges[:, 0] * len(gains) + host[edges[:, 1]]) // len(gains)
    hub = np.bincount(linked_hosts).argmax()
    return [*firsts[np.random.default_rng(seed).permutation(richest)[:3]].tolist(), int(hub)]
