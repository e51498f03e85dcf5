"""A crawl as Vega-Lite: hosts by what they cost and gave, yield and speed over time.

These are figures 1 to 4 of Suchomel & Pomikálek 2012.

Colours come from the page's theme; shape or dash says the same again for eyes that do not tell them apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.reporting.material import Material

Spec: TypeAlias = "dict[str, Any]"

MOST_POINTS = 20_000
"""Hosts that are drawn at the most: the _LARGEST and an even sample (chosen: a browser draws them in a second)."""
_LARGEST = 1_000
"""Hosts that cost most and are always drawn (chosen)."""
_MOST_ROWS = 120
"""Points of a curve at the most (chosen)."""
_YIELD_LINES = (1.0, 0.1, 0.01, 0.001)
"""Yield rates that are drawn as lines."""
_FLOOR_MB = 1e-4
"""Kept MB at which hosts that gave nothing are drawn: a logarithmic axis has no 0."""
_KINDS = {"retired": "retired", "exhausted": "exhausted: no URL left", "other": "left alone", "work": "at work"}


_UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"))
_CURVES = (
    (
        "Yield rate over time",
        "yield rate",
        {"mean": "all so far", "rate": "at that time"},
        "Bytes of new clean text / bytes downloaded, from the beginning on and from point to point.",
    ),
    ("Pages over time", "pages a second", {"pages": "pages"}, ""),
    ("Download over time", "MB a second", {"raw": "downloaded"}, ""),
    ("Clean text over time", "MB a second", {"clean": "kept"}, ""),
    ("Hosts over time", "hosts", {"at_work": "at work", "retired": "retired"}, ""),
)
"""Title; axis; key of a step -> name of its curve; note."""


class Chart(NamedTuple):
    """A Vega-Lite spec, without sizes and colours, and in words what it shows."""

    title: str
    spec: Spec
    note: str = ""


def scatter(material: Material) -> Chart:
    """A point for each host by its downloaded and kept bytes."""
    hosts = material.hosts
    order = np.argsort(-hosts.downloaded_bytes, kind="stable")
    order = order[hosts.downloaded_bytes[order] > 0]
    step = max(1, -(-(len(order) - _LARGEST) // (MOST_POINTS - _LARGEST)))
    shown = np.concatenate([order[:_LARGEST], order[_LARGEST::step]])
    points = [
        {
            "host": hosts.names[at],
            "state": str(hosts.states[at]),
            "kind": _kind(str(hosts.states[at])),
            "down": round(hosts.downloaded_bytes[at] / 1e6, 5),
            "kept": round(hosts.kept_bytes[at] / 1e6, 5),
            "y": max(_FLOOR_MB, round(hosts.kept_bytes[at] / 1e6, 5)),
            "rate": round(float(hosts.rates[at]), 4),
            "pages": int(hosts.pages[at]),
        }
        for at in shown.tolist()
    ]
    return Chart(
        "Hosts: downloaded and kept",
        _scatter_spec(points),
        "A point is a host; the dashed lines are yield rates. Hosts that gave nothing stand at the lower edge. The "
        "tables below name the hosts that gave and cost most."
        + (f" {len(points):,} of {len(order):,} hosts are drawn." if len(points) < len(order) else ""),
    )


def _scatter_spec(points: list[dict[str, Any]]) -> Spec:
    sizes = [point["down"] for point in points] or [1.0]
    left = max(_FLOOR_MB, min(sizes) / 1.5)
    right = max(sizes) * 1.5
    lines = [
        {"down": down, "y": down * rate, "line": f"{100 * rate:g} %"}
        for rate in _YIELD_LINES
        for down in (max(left, _FLOOR_MB / rate), right)
        if right * rate > _FLOOR_MB
    ]
    axes = {"x": _mb("down", left, right), "y": _mb("y", _FLOOR_MB, right)}
    kind = _named("kind", list(_KINDS.values()))
    tips = _tips("host", "state", "pages", down="downloaded MB", kept="kept MB", rate="yield rate")
    return {
        "datasets": {"points": points, "lines": lines},
        "height": 420,
        "layer": [
            {
                "data": {"name": "lines"},
                "mark": {"type": "line", "strokeDash": [4, 4], "strokeWidth": 1},
                "encoding": {**axes, "detail": {"field": "line"}, "color": {"value": "gray"}},
            },
            {
                "data": {"name": "lines"},
                "transform": [{"filter": f"datum.down >= {right}"}],
                "mark": {"type": "text", "align": "right", "dy": -8, "dx": -4},
                "encoding": {**axes, "text": {"field": "line"}},
            },
            {
                "data": {"name": "points"},
                "mark": {"type": "point", "filled": True, "opacity": 0.65, "size": 36},
                "encoding": {**axes, "color": kind, "shape": kind, "tooltip": tips},
            },
        ],
    }


def _kind(state: str) -> str:
    is_at_work = state in ("resolving", "ready", "in process", "snoozed")
    return _KINDS["work"] if is_at_work else _KINDS.get(state, _KINDS["other"])


def over_time(material: Material) -> list[Chart]:
    """Yield, speed and hosts by hours of running time; empty when the state holds no history."""
    rows = _picked(material.history)
    if len(rows) < 2:
        return []
    seconds, unit = next((pair for pair in _UNITS if rows[-1].time_s >= 2 * pair[0]), _UNITS[-1])
    steps = [_step(before, row, seconds) for before, row in pairwise(rows)]
    return [Chart(title, _lines(steps, unit, axis, lines), note) for title, axis, lines, note in _CURVES]


def _picked(history: list[HistoryRow]) -> list[HistoryRow]:
    """About `_MOST_ROWS` rows, evenly spread over the running time, the first and the last among them."""
    picked = [HistoryRow(0, *(0,) * 12)]
    span = history[-1].time_s / _MOST_ROWS if history else 0
    for row in history:
        if row is history[-1] or row.time_s - picked[-1].time_s >= max(span, 1):
            picked.append(row)
    return picked


def _step(before: HistoryRow, row: HistoryRow, unit: int) -> dict[str, float]:
    seconds = max(1, row.time_s - before.time_s)
    down = row.downloaded_bytes - before.downloaded_bytes
    kept = row.kept_bytes - before.kept_bytes
    return {
        "at": round(row.time_s / unit, 4),
        "down": round(row.downloaded_bytes / 1e6, 2),
        "rate": round(kept / max(1, down), 5),
        "mean": round(row.kept_bytes / max(1, row.downloaded_bytes), 5),
        "pages": round((row.pages - before.pages) / seconds, 2),
        "raw": round(down / seconds / 1e6, 4),
        "clean": round(kept / seconds / 1e6, 5),
        "at_work": row.at_work,
        "retired": row.retired,
    }


def _lines(steps: list[dict[str, float]], unit: str, axis: str, lines: dict[str, str]) -> Spec:
    values = [
        {"at": step["at"], "value": step[key], "which": label, "down": step["down"]}
        for step in steps
        for key, label in lines.items()
    ]
    names = list(lines.values())
    return {
        "data": {"values": values},
        "height": 220,
        "mark": {"type": "line", "point": {"size": 18}, "strokeWidth": 2},
        "encoding": {
            "x": {"field": "at", "type": "quantitative", "title": f"{unit} of running time"},
            "y": {"field": "value", "type": "quantitative", "title": axis},
            "color": _named("which", names, is_line=True),
            "strokeDash": _named("which", names, is_line=True),
            "tooltip": _tips(which="", value=axis, at=unit, down="MB downloaded by then"),
        },
    }


def _mb(field: str, low: float, high: float) -> Spec:
    scale = {"type": "log", "nice": False, "domain": [low, high]}
    title = "kept, MB" if field == "y" else "downloaded, MB"
    return {"field": field, "type": "quantitative", "scale": scale, "title": title}


def _named(field: str, domain: list[str], is_line: bool = False) -> Spec:
    legend = {"title": None, "orient": "top"} if len(domain) > 1 else None
    if legend and is_line:
        legend["symbolType"] = "stroke"
    return {"field": field, "type": "nominal", "scale": {"domain": domain}, "legend": legend}


def _tips(*fields: str, **titles: str) -> list[Spec]:
    return [{"field": name, "title": title} for name, title in {**{name: name for name in fields}, **titles}.items()]
