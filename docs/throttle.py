"""docs/throttle.svg: how often the hosts of a class are asked, by what the class gives.

``python -m docs.throttle`` draws it anew from the constants of the code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from spiderling.frontier.throttle import BAR, LOWEST, POWER

PICTURE = Path(__file__).with_name("throttle.svg")
LEFT, RIGHT, TOP, BOTTOM = 70, 600, 30, 210
FROM, TO = 0.01, 3.0
"""Yield rate of a class / that of the crawl, at the ends of the axis."""
BUSY = "#2a7f4f"
IDLE = "#d98b3a"
INK = "#222"


def main() -> None:
    PICTURE.write_text(picture(), encoding="utf-8")


def share(rate: float, bar: float) -> float:
    """The requests to a class of this yield rate / those that politeness allows."""
    return min(1.0, (rate / bar) ** POWER)


def x_of(rate: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log(rate / FROM) / math.log(TO / FROM)


def y_of(part: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * part


def curve(bar: float, colour: str) -> str:
    """The line of *share* along the axis."""
    rates = [FROM * (TO / FROM) ** (at / 100) for at in range(101)]
    points = " ".join(f"{x_of(rate):.1f},{y_of(share(rate, bar)):.1f}" for rate in rates)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def label(x: float, y: float, text: str, anchor: str = "middle", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def axes() -> Iterator[str]:
    yield f'<path d="M{LEFT} {TOP} V{BOTTOM} H{RIGHT}" fill="none" stroke="{INK}"/>'
    for rate in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        yield label(x_of(rate), BOTTOM + 16, f"{rate:g}")
    for part in (0.0, 0.5, 1.0):
        yield label(LEFT - 8, y_of(part) + 4, f"{part:.0%}", "end")
    yield label((LEFT + RIGHT) / 2, BOTTOM + 36, "yield rate of the class / yield rate of the crawl")
    yield label(LEFT - 8, TOP - 14, "how often its hosts are asked", "start")


def picture() -> str:
    """The drawing."""
    lowest = LOWEST * BAR
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="260" font-family="sans-serif" font-size="11">',
        '<rect width="640" height="260" fill="#fff"/>',
        *axes(),
        curve(lowest, IDLE),
        curve(BAR, BUSY),
        label(x_of(BAR) + 6, y_of(0.45), "while text comes as usual", "start", BUSY),
        label(x_of(lowest) - 6, y_of(0.75), "while little text comes", "end", IDLE),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
