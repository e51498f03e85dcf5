"""Cases of traps: sites that give addresses without end (webs/traps.py), on one server each."""

from __future__ import annotations

from pathlib import Path

from hostile import Visit, add, rendered

from spiderling.base.reasons import Reason
from webs.synthetic import read_words
from webs.traps import TrapWeb

MODELS = Path(__file__).resolve().parents[2] / "models"
WEB = TrapWeb(read_words(MODELS, ("cs",))["cs"])


async def serve(visit: Visit) -> None:
    await visit.send(rendered(WEB.respond(visit.host, visit.path)))


def trap(name: str, max_requests: int, found: Reason, **rest: object) -> None:
    """The trap *name*, which may cost so many requests, robots.txt included; *found*: how some of its URLs end."""
    hosts = tuple(glob for glob in WEB.globs() if WEB.name_of(glob) == name)
    seeds = (f"http://{WEB.host(name)}/",)
    add(f"trap-{name}", serve, ends={}, seeds=seeds, hosts=hosts, max_requests=max_requests, found=found, **rest)


COPIES: dict[Reason, int | None] = {Reason.TRAP_COPY: None}
trap("calendar", 200, Reason.TRAPPED, mentions={Reason.TRAP_SECTION: None})
trap("diary", 30, Reason.SOFT_NOT_FOUND, mentions=COPIES)
trap("growing", 40, Reason.SOFT_NOT_FOUND, mentions=COPIES)
trap("looping", 10, Reason.KEPT, mentions={Reason.TRAP: 1})
trap("session", 30, Reason.KEPT)
trap("token", 80, Reason.TRAPPED)
trap("facets", 120, Reason.BAD_QUALITY, mentions={Reason.TRAP_SECTION: None})
trap("tracking", 30, Reason.KEPT)
trap("soft404", 100, Reason.SOFT_NOT_FOUND, mentions=COPIES)
trap("wild", 120, Reason.TRAPPED)
trap("mirror", 450, Reason.MIRROR)
