"""Yields by the paper's measures, on hosts whose figures can be reckoned by hand."""

from __future__ import annotations

import pytest
from made import MB, hosts_of

from spiderling.base.options import Options
from spiderling.frontier.host_closing import MIN_BYTES, MIN_PAGES, RetirementRule
from spiderling.frontier.hosts import YieldAccount
from spiderling.reporting.advice import profile_table, profiles, retired_by, threshold_table

HOSTS = hosts_of(
    ("ready", 100, 10 * MB, 5 * MB, 0),
    ("exhausted", 1000, 100 * MB, 2 * MB, 0),
    ("retired", 1000, 80 * MB, MB // 2, 4000),
    ("retired", 50, 10 * MB, 0, 900),
    ("ready", 4, MB, 0, 0),
)
OPTIONS = Options(lang="cs")


def test_threshold_table_is_w12s():
    rows = {row.pop("yield_rate_above"): [*row.values()] for row in threshold_table(HOSTS).rows}
    assert rows["any"] == [5, 201.0, 7.5, round(7.5 / 201, 4), 100.0, 100.0]
    assert rows["0"][:3] == [3, 190.0, 7.5]
    assert rows["0.0064"][:3] == [2, 110.0, 7.0], "the third has .00625"
    assert rows["0.0256"] == [1, 10.0, 5.0, 0.5, round(1000 / 201, 1), round(500 / 7.5, 1)]
    numbers = [row[0] for row in rows.values()]
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize("factor", [0.002, 0.005, 0.01, 0.02, 0.1])
def test_retired_by_is_the_rule_of_the_crawl(factor):
    rule = RetirementRule(factor, MIN_PAGES, MIN_BYTES)
    columns = zip(HOSTS.pages, HOSTS.downloaded_bytes, HOSTS.kept_bytes, strict=True)
    retired = [rule.retires(YieldAccount(*map(int, row))) for row in columns]
    assert retired_by(HOSTS, factor).tolist() == retired


def test_profiles_say_what_other_thresholds_would_have_meant():
    found = {profile.name: profile for profile in profiles(HOSTS, OPTIONS)}
    assert [*found] == ["off", "permissive", "normal", "paper", "0.02"]
    assert found["off"] == ("off", 0.0, 0, 0.0, 0.0, pytest.approx(0.5 * MB / 1000 * 4000))
    assert found["normal"].retired == 2
    assert found["normal"].more_bytes == 0.0, "both hosts would stay retired"
    assert found["permissive"].more_bytes == pytest.approx(2 * MB), "the third's parked URLs, each as those before"
    assert found["0.02"].retired == 3
    spared = (100 - 0.8) + (80 - 0.64) + (10 - 1.6)  # MB beyond 8 pages of each host
    assert found["0.02"].spared_share == pytest.approx(spared / 201)
    assert found["0.02"].lost_share == pytest.approx((2 * 0.992 + 0.5 * 0.992) / 7.5)


def test_hosts_that_are_retired_are_counted_once():
    """They were retired by what they had given then; by what they gave in all, the rule would find others."""
    hosts = hosts_of(
        ("retired", 1000, 50 * MB, 2 * MB, 10),
        ("exhausted", 1000, 50 * MB, MB // 4, 0),
        ("exhausted", 1000, 50 * MB, 20 * MB, 0),
    )
    found = {profile.name: profile.retired for profile in profiles(hosts, OPTIONS)}
    assert retired_by(hosts, 0.005).tolist() == [False, True, False]
    assert found == {"off": 0, "permissive": 0, "normal": 1, "paper": 2, "0.02": 2}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"yield_profile": "0.003"}, ["off", "permissive", "0.003 (used)", "normal", "paper", "0.02"]),
        ({"strategy": "bfs"}, ["off (used)", "permissive", "normal", "paper", "0.02"]),
    ],
    ids=["one's own", "a strategy that retires nobody"],
)
def test_the_profile_in_use_is_named(options, names):
    table = profile_table(HOSTS, Options(lang="cs", **options))
    assert [row["profile"] for row in table.rows] == names


def test_a_crawl_of_nothing_has_tables_too():
    assert len(profile_table(hosts_of(), OPTIONS).rows) == 5 and threshold_table(hosts_of()).rows[0]["hosts"] == 0
