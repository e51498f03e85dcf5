"""Alerts: what somebody should be told of a running crawl, and how it gets there.

Each waits in a file of the crawl until every channel has taken it, in order.  A channel is a web address (POST with
JSON) or a command (JSON on its standard input).  An alert that fails is tried again, with growing pauses, and never
harms the crawl.  A kill between its delivery and the next writing of the file delivers it twice; none is lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from spiderling.base.atomic_files import write_whole
from spiderling.base.errors import SpiderlingError, StorageError
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.printing import counted

logger = logging.getLogger(__name__)

Alert: TypeAlias = "dict[str, Any]"

FILE = "alerts.json"
"""Name of the file in the directory ``state``."""
EVERY_S = 3600.0
"""Seconds within which at most one alert of a kind is sent."""
LIMIT_S = 30.0
"""Seconds for one delivery; after that a command is killed."""
FIRST_PAUSE_S = 5.0
"""Seconds before the second attempt; the pause doubles with each (chosen)."""
_LONGEST_PAUSE_S = 600.0
"""Chosen: whoever mends a channel need not wait long."""
LAST_S = 30.0
"""Seconds for which the end of a crawl waits for its last alerts."""
_MOST = 1000
"""Alerts that wait for a channel at most; of more, the oldest are given up (chosen: four days of every kind)."""
_HOUR_S = 3600.0
_LEAST_BYTES = 10_000_000
"""Bytes that an hour must have brought before its yield is judged; chosen: about 200 pages."""
_STORM_S = 600.0
"""Seconds over which refusals are counted (chosen: ten answers of a host that is asked once a minute)."""
_STORM = 50
"""Answers of 429 and 503 within that time that make a storm, if they are also ... (chosen: more than one host gives)"""
_STORM_SHARE = 0.2
"""... this share of all answers (chosen)."""
_GONE = "network-gone"


class Alerts:
    """What waits for each channel; belongs to the event loop of one crawl."""

    def __init__(self, options: Options, crawl: Path) -> None:
        """Take up what an earlier run has left in the directory *crawl*, and begin to deliver it."""
        self._crawl = crawl
        self._path = crawl / "state" / FILE
        channels = _channels(options)
        self._waiting: dict[str, list[Alert]] = {name: [] for name in channels}
        self._taken: dict[str, float] = {}
        """Kind -> time of its last alert."""
        self._read()
        self._new = asyncio.Event()
        self._changed = asyncio.Event()
        self._ending = asyncio.Event()
        self._writer = asyncio.ensure_future(self._keep())
        self._tasks = [asyncio.ensure_future(self._serve(name, deliver)) for name, deliver in channels.items()]

    def _read(self) -> None:
        try:
            found = json.loads(self._path.read_text("utf-8"))
            self._taken = {str(kind): float(time) for kind, time in found["taken"].items()}
            for name, alerts in self._waiting.items():
                alerts += found["waiting"].get(name, [])
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            logger.warning("%s cannot be read, and alerts that wait in it are lost: %s", self._path, error)

    def take(self, kind: str, text: str, now: float) -> bool:
        """Take an alert to be sent; False if one of its *kind* was taken within the hour before *now*."""
        if now - self._taken.get(kind, -EVERY_S) < EVERY_S:
            return False
        self._taken[kind] = now
        alert = {
            "kind": kind,
            "text": f"{self._crawl.resolve().name}: {text}",
            "crawl": str(self._crawl.resolve()),
            "machine": socket.gethostname(),
            "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        }
        for alerts in self._waiting.values():
            alerts.append(alert)
            del alerts[1:-_MOST]  # the first may be on its way
        logger.info("Alert (%s): %s", kind, text)
        self._new.set()
        self._changed.set()
        return True

    async def close(self) -> None:
        """Give what waits a last chance; what is not taken then waits for the next run."""
        self._ending.set()
        self._new.set()
        if any(self._waiting.values()):
            logger.info("Alerts are being sent, for at most %g s", LAST_S)
        await asyncio.wait(self._tasks, timeout=LAST_S)
        for task in (*self._tasks, self._writer):
            task.cancel()
        await self._write()
        left = max(map(len, self._waiting.values()))
        if left:
            logger.warning("%s could not be sent; the next run of the crawl tries again", counted(left, "alert"))

    async def _keep(self) -> None:
        """Write the file after each change."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._write()

    async def _write(self) -> None:
        text = json.dumps({"taken": self._taken, "waiting": self._waiting}, indent=1)
        try:
            await asyncio.to_thread(write_whole, self._path, text)
        except StorageError as error:  # a full disk is what some alerts are about: they are sent all the same
            logger.warning("Alerts that wait are kept in memory only: %s", error)

    async def _serve(self, channel: str, deliver: Callable[[Alert], Awaitable[None]]) -> None:
        """Deliver what waits for *channel*, in order, until the crawl ends and nothing waits."""
        alerts = self._waiting[channel]
        pause_s = FIRST_PAUSE_S
        while alerts or not self._ending.is_set():
            if not alerts:
                self._new.clear()
                await self._new.wait()
                continue
            try:
                await deliver(alerts[0])
            except Exception as error:  # whatever it is, the crawl goes on
                if pause_s == FIRST_PAUSE_S:
                    logger.warning("%s takes no alert, and is tried again: %s", channel, _said(error))
                await self._rest(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                del alerts[0]
                self._changed.set()
                pause_s = FIRST_PAUSE_S

    async def _rest(self, pause_s: float) -> None:
        """Wait for *pause_s*, but not beyond the moment when the crawl begins to end."""
        if self._ending.is_set():
            await asyncio.sleep(FIRST_PAUSE_S)
            return
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._ending.wait(), pause_s)


class _NotTaken(SpiderlingError):
    """A channel did not take an alert."""


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, _NotTaken) else f"{type(error).__name__}: {error}"


def _channels(options: Options) -> dict[str, Callable[[Alert], Awaitable[None]]]:
    """Each channel that *options* name -> what delivers an alert to it, or raises."""
    channels: dict[str, Callable[[Alert], Awaitable[None]]] = {}
    if options.alert_url:
        channels[f"{PREFIX}ALERT_URL"] = partial(_post, options.alert_url)
    if options.alert_command:
        command = shlex.split(options.alert_command)
        if shutil.which(command[0]) is None:
            logger.warning("%sALERT_COMMAND: there is no program %s; alerts wait for it", PREFIX, command[0])
        channels[f"{PREFIX}ALERT_COMMAND"] = partial(_hand_over, command)
    return channels


async def _post(url: str, alert: Alert) -> None:
    """Send *alert* to *url*, as the user gave it: no filter of addresses holds for it, and no redirect is followed."""
    import aiohttp  # takes long to load

    limit = aiohttp.ClientTimeout(total=LIMIT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.post(url, json=alert, allow_redirects=False) as answer,
        ):
            status = answer.status
    except (TimeoutError, aiohttp.ClientError) as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise _NotTaken(said.replace(url, "the address")) from error  # which may hold a secret
    if not 200 <= status < 300:
        raise _NotTaken(f"it answered with status {status}")


async def _hand_over(command: list[str], alert: Alert) -> None:
    """Give *alert* to *command*, in a group of its own that Ctrl-C does not reach; its errors go where ours go."""
    process = await asyncio.to_thread(_start, command)
    try:
        await asyncio.to_thread(_feed, process, json.dumps(alert).encode())
    finally:
        if process.poll() is None:  # the crawl ends
            os.killpg(process.pid, signal.SIGKILL)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    try:
        process.communicate(data, LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise _NotTaken(f"it ran for more than {LIMIT_S:g} s") from None
    if process.returncode:
        raise _NotTaken(f"it ended with exit code {process.returncode}")


class Sample(NamedTuple):
    """What a crawl shows at one moment; totals count from its first start, answers from that of this process."""

    now: float
    downloaded_bytes: int
    kept_bytes: int
    internal_errors: int
    answers: int
    refusals: int
    """Answers of 429 and 503."""
    trouble: str
    """How the network fails, '' if it does not."""
    free_bytes: int
    """Of the disk that the crawl writes to."""


class AlertRules:
    """Decides what somebody should be told: each trouble once, and again when it has passed and is back.

    The end of a crawl is told by extensions/alerts.py, which also takes the samples.
    """

    def __init__(self, options: Options, internal_errors: int) -> None:
        """*internal_errors*: those of earlier runs, of which nobody is told any more."""
        self._options = options
        self._errors_told = internal_errors
        self._told: set[str] = set()
        """Kinds of trouble that lasts and was told."""
        self._hour: deque[Sample] = deque()
        """The samples of the last hour, and the one before them."""

    def look(self, sample: Sample, tell: Callable[[str, str], bool]) -> None:
        """Call ``tell(kind, text)`` for what is new; it returns False if that must wait, and is called again then."""
        self._hour.append(sample)
        while len(self._hour) > 1 and self._hour[1].now <= sample.now - _HOUR_S:
            self._hour.popleft()
        there = {kind: text for kind, text in self._troubles(sample).items() if text}
        if _GONE in self._told and _GONE not in there and tell("network-back", _BACK):
            self._told.discard(_GONE)
        self._told &= there.keys() | {_GONE}
        for kind, text in there.items():
            if kind not in self._told and tell(kind, text):
                self._told.add(kind)
        errors = sample.internal_errors - self._errors_told
        if errors > 0 and tell("internal-errors", _errors(errors)):
            self._errors_told = sample.internal_errors

    def _troubles(self, sample: Sample) -> dict[str, str]:
        """Each kind of trouble that may last -> what to say of it, '' if it is not there."""
        return {
            _GONE: sample.trouble and _gone(sample.trouble, self._options.offline_wait_s),
            "disk": _disk(sample.free_bytes) if sample.free_bytes < self._options.alert_free_bytes else "",
            "low-yield": self._low_yield(sample),
            "refusals": self._storm(sample),
        }

    def _low_yield(self, sample: Sample) -> str:
        first = self._hour[0]
        down = sample.downloaded_bytes - first.downloaded_bytes
        rate = (sample.kept_bytes - first.kept_bytes) / max(1, down)
        if first.now > sample.now - _HOUR_S or down < _LEAST_BYTES or rate >= self._options.alert_yield:
            return ""
        return (
            f"The last hour gave {rate:.5f} of its {down / 1e6:,.0f} MB as text, less than SPIDERLING_ALERT_YIELD="
            f"{self._options.alert_yield:g}. Add seeds ('seeds' in control.yaml), block the hosts that cost most "
            "('scrapy report' names them), or stop."
        )

    def _storm(self, sample: Sample) -> str:
        first = next((one for one in self._hour if one.now >= sample.now - _STORM_S), sample)
        answers = sample.answers - first.answers
        refusals = sample.refusals - first.refusals
        if refusals < _STORM or refusals < _STORM_SHARE * answers:
            return ""
        return (
            f"{refusals:,} of the {answers:,} answers of the last ten minutes were 429 or 503: servers want fewer "
            "requests. Each such host is asked more seldom by itself; if many stand behind one address, raise "
            "'ip_interval_s' in control.yaml."
        )


_BACK = "The network is there again, and the crawl goes on; there is nothing to do."


def _gone(trouble: str, wait_s: float) -> str:
    return (
        f"The network seems to be away: {trouble}. Look at the line and the name servers; the crawl keeps its URLs, "
        f"goes on when anything answers, and stops after {wait_s:g} s."
    )


def _disk(free_bytes: int) -> str:
    return f"The disk of the crawl has only {free_bytes / 1e6:,.0f} MB left. Make room: a full disk stops the crawl."


def _errors(number: int) -> str:
    return (
        f"{counted(number, 'internal error')} ended single URLs or site files; the crawl goes on. crawl.log has a "
        "traceback of each kind: please report it."
    )
