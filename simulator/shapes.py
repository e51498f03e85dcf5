"""Webs made for one question each: text that lies behind bad hosts, and blogs on few platforms beside farms.

All numbers are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from simulator.graphs import Node, recorded_web
from simulator.pages import Array, PageWeb
from spiderling.base.reasons import Reason


def hops(pages: int, seed: int) -> PageWeb:
    """Text behind three hops of bad hosts, of which one in ten leads on; two large hosts with text are the seeds."""
    rng = np.random.default_rng([seed, 5])
    unit = max(1, pages // 1_000)
    layers = [(2, "large"), *[(7 * unit, "bad")] * 3, (4 * unit, "good"), (14 * unit, "bad")]
    kinds = [kind for number, kind in layers for _ in range(number)]
    layer = np.repeat(np.arange(len(layers)), [number for number, _ in layers])
    last = len(layers) - 1  # bad hosts that lead nowhere
    leads = [[0, 0, 1, last], [1, 2, last], [2, 3, last], [3, 4, last], [4, 4, 4, last], [last]]
    return _web("hops", rng, kinds, [f"h{at}.test" for at in range(len(kinds))], layer, leads, 25, 3)


def platforms(pages: int, seed: int) -> PageWeb:
    """Blogs of six platforms: many in other languages, some in two, and farms of pages that are no text."""
    rng = np.random.default_rng([seed, 6])
    number = max(60, pages // 8)
    kinds = rng.choice(["good", "both", "bad", "farm"], number, p=[0.12, 0.05, 0.68, 0.15]).tolist()
    layer = np.array([("good", "both", "bad", "farm").index(kind) for kind in kinds])
    leads = [[0, 0, 0, 1, 2, 2, 3], [0, 1, 2, 2], [2, 2, 2, 2, 1], [3, 3, 3, 2]]
    platform = rng.integers(0, 6, number)
    names = [f"b{at}.platform{platform[at]}.com" for at in range(number)]
    web = _web("platforms", rng, kinds, names, layer, leads, 8)
    web.hosts.address[:] = [int(name.partition("platform")[2][0]) for name in web.hosts.names]
    return web


SHAPES: dict[str, Callable[[int, int], PageWeb]] = {"hops": hops, "platforms": platforms}
"""By name: a function of the number of pages, about, and the seed."""


def _web(
    title: str,
    rng: np.random.Generator,
    kinds: Sequence[str],
    names: Sequence[str],
    layer: Array,
    leads: Sequence[Sequence[int]],
    mean: int,
    depth: int = 0,
) -> PageWeb:
    """A web of hosts with *kinds* and *names*; a host of a *layer* links to those of the layers in *leads*.

    *mean*: pages of a host.  A page links to its host's first page and the next two, to some others of it, and to
    pages of other hosts, most often their first.  With *depth* nine of ten bad hosts lead to hosts of their layer
    alone, and so do the first *depth* pages of the others.
    """
    sizes = np.maximum(2, rng.geometric(1 / mean, len(kinds)))
    sizes[[kind == "large" for kind in kinds]] = len(kinds) // 3
    first = np.concatenate(([0], np.cumsum(sizes)))
    host = np.repeat(np.arange(len(kinds)), sizes)
    nodes = [_node(rng, kinds[of], names[of], at - int(first[of])) for at, of in enumerate(host.tolist())]
    members = [np.flatnonzero(layer == number) for number in range(len(leads))]
    pairs = []
    for at, of in enumerate(host.tolist()):
        low, high = int(first[of]), int(first[of + 1])
        near = [low, min(at + 1, high - 1), min(at + 2, high - 1), *rng.integers(low, high, 2)]
        is_front = depth and kinds[of] == "bad" and (of % 10 or at - low < depth)
        towards = rng.choice([layer[of]] if is_front else leads[layer[of]], int(rng.integers(1, 6)))
        others = [int(rng.choice(members[number])) for number in towards]
        away = [
            first[other] if rng.random() < 0.7 else rng.integers(first[other], first[other + 1]) for other in others
        ]
        pairs += [(at, int(target)) for target in {*near, *away} if target != at]
    edges = np.zeros((len(pairs), 5), np.int64)
    edges[:, :2] = pairs
    edges[:, 2] = 128
    seeds = [int(first[at]) for at in np.flatnonzero(layer == 0)[:5]]
    return recorded_web(title, nodes, edges, "th", seeds)


def _node(rng: np.random.Generator, kind: str, name: str, number: int) -> Node:
    """Page *number* of a host; first pages hold no text."""
    body = int(30_000 * rng.lognormal(-0.12, 0.5))
    is_wanted = kind in ("good", "large", "farm") or (kind == "both" and bool(rng.random() < 0.5))
    if not is_wanted:
        reason, kept = Reason.WRONG_LANGUAGE, 0
    elif kind == "farm":
        reason, kept = Reason.BAD_QUALITY, 0
    elif number == 0 or rng.random() < 0.3:
        reason, kept = Reason.BOILERPLATE_ONLY, 0
    else:
        reason, kept = Reason.KEPT, int(body * 0.1 * rng.lognormal(-0.12, 0.5))
    return Node(
        f"http://{name}/p{number}.html", body, kept, reason, is_wanted, 10.0 if is_wanted else 60.0, "", None, 0
    )
