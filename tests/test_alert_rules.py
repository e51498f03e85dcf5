"""What alerts are about, on made samples: each trouble is told once, and again when it has passed and is back."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys

import pytest

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.live.alerts import AlertRules, Alerts, Sample

HOUR_S = 3600.0
CALM = Sample(0.0, 0, 0, 0, 0, 0, "", 10**12)


class Day:
    """A crawl of which one sample is taken each ten seconds."""

    def __init__(self, **options) -> None:
        self.rules = AlertRules(Options(**options), internal_errors=0)
        self.sample = CALM
        self.told: list[tuple[float, str, str]] = []
        self.is_heard = True

    def go_on(self, seconds: float, down: int = 0, kept: int = 0, answers: int = 0, refusals: int = 0, **now) -> None:
        """Let *seconds* pass, with that much more in each ten of them."""
        for _ in range(int(seconds / 10)):
            last = self.sample
            self.sample = last._replace(
                now=last.now + 10, downloaded_bytes=last.downloaded_bytes + down, kept_bytes=last.kept_bytes + kept,
                answers=last.answers + answers, refusals=last.refusals + refusals, **now,
            )  # fmt: skip
            self.rules.look(self.sample, self.tell)

    def tell(self, kind: str, text: str) -> bool:
        if self.is_heard:
            self.told.append((self.sample.now, kind, text))
        return self.is_heard

    @property
    def kinds(self) -> list[str]:
        return [kind for _, kind, _ in self.told]


def test_a_calm_crawl_says_nothing():
    day = Day()
    day.go_on(3 * HOUR_S, down=1_000_000, kept=100_000, answers=50)
    assert day.told == []


def test_a_network_that_goes_and_comes_back_is_told_once_each_time():
    day = Day()
    day.go_on(60, trouble="5 of 5 hosts fail: dns")
    day.go_on(60, trouble="")
    assert day.kinds == ["network-gone", "network-back"]
    assert "5 of 5 hosts fail: dns" in day.told[0][2] and "86400 s" in day.told[0][2]
    day.go_on(60, trouble="again")
    assert day.kinds == ["network-gone", "network-back", "network-gone"]


def test_what_could_not_be_told_is_told_later_if_it_is_still_so():
    day = Day()
    day.is_heard = False
    day.go_on(60, trouble="away", internal_errors=3)
    day.go_on(60, trouble="", free_bytes=10**9)
    day.is_heard = True
    day.go_on(10)
    assert day.kinds == ["disk", "internal-errors"], "the network is back, so nobody need know that it was away"
    assert "1,000 MB" in day.told[0][2] and day.told[1][2].startswith("3 internal errors ended")


def test_a_low_yield_is_told_after_a_whole_hour_of_it():
    day = Day()
    day.go_on(2 * HOUR_S, down=100_000, kept=1_000)
    day.go_on(HOUR_S - 600, down=100_000, kept=0)
    assert day.kinds == []
    day.go_on(2 * HOUR_S, down=100_000, kept=0)
    assert day.kinds == ["low-yield"] and "36 MB" in day.told[0][2]
    assert HOUR_S * 2.8 < day.told[0][0] <= HOUR_S * 3.1
    day.go_on(HOUR_S, down=100_000, kept=10_000)
    day.go_on(2 * HOUR_S, down=100_000, kept=0)
    assert day.kinds == ["low-yield"] * 2


def test_an_hour_that_brought_hardly_anything_has_no_yield():
    day = Day()
    day.go_on(3 * HOUR_S, down=1_000)
    assert day.kinds == []


@pytest.mark.parametrize(
    ("answers", "refusals", "kinds"), [(10, 3, ["refusals"]), (100, 3, []), (0, 0, [])], ids=["storm", "few", "none"]
)
def test_a_storm_is_many_refusals_among_the_answers(answers, refusals, kinds):
    day = Day()
    day.go_on(1200, answers=answers, refusals=refusals)
    assert day.kinds == kinds


def test_each_internal_error_is_told_in_the_end():
    day = Day()
    day.go_on(10, internal_errors=1)
    day.is_heard = False
    day.go_on(30, internal_errors=4)
    day.is_heard = True
    day.go_on(10)
    assert [text.partition(" ended")[0] for _, _, text in day.told] == ["1 internal error", "3 internal errors"]


# -- on the way

ECHO = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


def told(path) -> list[str]:
    return (
        [json.loads(line)["text"].partition(": ")[2] for line in path.read_text().splitlines()] if path.exists() else []
    )


def in_session(directory, command, work) -> None:
    """Call *work* with the alerts of a crawl in *directory*, and close them."""

    async def run():
        alerts = Alerts(Options(alert_command=command), directory)
        await work(alerts)
        await alerts.close()

    (directory / "state").mkdir(exist_ok=True)
    asyncio.run(run())


def test_one_of_a_kind_an_hour_also_after_a_restart(tmp_path):
    out = tmp_path / "out"
    command = f'{sys.executable} -c "{ECHO}" {out}'

    async def first(alerts):
        assert [alerts.take("disk", "one", 0.0), alerts.take("disk", "two", 3599.0)] == [True, False]
        assert alerts.take("low-yield", "other", 3599.0)

    async def second(alerts):
        assert [alerts.take("disk", "three", 3599.0), alerts.take("disk", "four", 3600.0)] == [False, True]

    in_session(tmp_path, command, first)
    in_session(tmp_path, command, second)
    assert told(out) == ["one", "other", "four"]


def test_a_command_that_fails_keeps_all_alerts_in_order_for_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr("spiderling.live.alerts.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("spiderling.live.alerts.LAST_S", 0.5)
    out = tmp_path / "out"

    async def take(alerts):
        assert all(alerts.take(kind, kind, 0.0) for kind in ("disk", "low-yield", "finished"))

    async def nothing(alerts):
        return

    in_session(tmp_path, f"{sys.executable} -c 'raise SystemExit(1)'", take)
    assert not out.exists()
    in_session(tmp_path, f'{sys.executable} -c "{ECHO}" {out}', nothing)
    assert told(out) == ["disk", "low-yield", "finished"]


def test_a_command_that_runs_too_long_is_killed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("spiderling.live.alerts.LIMIT_S", 0.5)
    monkeypatch.setattr("spiderling.live.alerts.LAST_S", 30)
    out = tmp_path / "out"
    slow_once = (
        f"import os, sys, time; first = not os.path.exists({str(out)!r}); "
        f"open({str(out)!r}, 'a').write('' if first else sys.stdin.read()); time.sleep(600 if first else 0)"
    )

    async def take(alerts):
        assert alerts.take("disk", "text", 0.0)

    in_session(tmp_path, shlex.join([sys.executable, "-c", slow_once]), take)
    assert "SPIDERLING_ALERT_COMMAND takes no alert, and is tried again: it ran for more than 0.5 s" in caplog.text
    assert told(out) == ["text"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"taken": 1, "waiting": {}}', b"\xff"])
def test_a_damaged_file_harms_nothing(tmp_path, damage):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "alerts.json").write_bytes(damage)
    out = tmp_path / "out"

    async def take(alerts):
        assert alerts.take("disk", "text", 0.0)

    in_session(tmp_path, f'{sys.executable} -c "{ECHO}" {out}', take)
    assert told(out) == ["text"]


@pytest.mark.parametrize(
    ("name", "value"), [("URL", "hooks.example.org/x"), ("URL", "file:///etc/passwd"), ("COMMAND", "mail 'me")]
)
def test_a_channel_that_cannot_be_is_refused(name, value):
    with pytest.raises(BadInput, match=f"SPIDERLING_ALERT_{name} (is no address|cannot be split)"):
        Options.from_settings({f"SPIDERLING_ALERT_{name}": value})
