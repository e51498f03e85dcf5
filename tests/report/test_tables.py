"""Tables of the report by the papers' measures, on hosts whose figures can be reckoned by hand."""

from __future__ import annotations

import dataclasses

import pytest
from made import hosts_of, material

from spiderling.frontier.host_closing import RetirementRule
from spiderling.frontier.hosts import YieldAccount
from spiderling.reporting import tables
from spiderling.reporting.advice import advice
from spiderling.reporting.material import Seed
from spiderling.reporting.tiles import tiles

MB = 1_000_000
HOSTS = hosts_of(
    ("rich.cz", "ready", 100, 10 * MB, 5 * MB, 0),
    ("fair.cz", "exhausted", 1000, 100 * MB, 2 * MB, 0),
    ("poor.com", "retired", 1000, 80 * MB, MB // 2, 4000),
    ("bare.com", "retired", 50, 10 * MB, 0, 900),
    ("new.sk", "ready", 4, MB, 0, 0),
)


def test_threshold_table_is_w12s():
    rows = {row[0]: row[1:] for row in tables.thresholds(material(HOSTS)).rows}
    assert rows["none"] == (5, 201.0, 7.5, 7.5 / 201, 100.0, 100.0)
    assert rows[0.0][:3] == (3, 190.0, 7.5)
    assert rows[0.0064][:3] == (2, 110.0, 7.0), "poor.com has .00625"
    assert rows[0.0256][:3] == (1, 10.0, 5.0)
    assert rows[0.0256][4:] == (pytest.approx(1000 / 201), pytest.approx(500 / 7.5))
    hosts = [row[0] for row in rows.values()]
    assert hosts == sorted(hosts, reverse=True)


@pytest.mark.parametrize("factor", [0.002, 0.005, 0.01, 0.02, 0.1])
def test_retired_by_is_the_rule_of_the_crawl(factor):
    given = material(HOSTS)
    rule = RetirementRule(factor, given.options.yield_min_pages, given.options.yield_min_bytes)
    columns = zip(HOSTS.pages, HOSTS.downloaded_bytes, HOSTS.kept_bytes, strict=True)
    assert tables.retired_by(given, factor).tolist() == [rule.retires(YieldAccount(*map(int, row))) for row in columns]


def test_profiles_say_what_other_thresholds_would_have_meant():
    found = {profile.name: profile for profile in tables.profiles(material(HOSTS))}
    assert [*found] == ["off", "permissive", "normal", "paper", "0.02"]
    assert found["off"] == ("off", 0.0, 0, 0.0, 0.0, pytest.approx(0.5 * MB / 1000 * 4000))
    assert found["normal"].retired == 2
    assert found["normal"].more_bytes == 0.0, "both hosts would stay retired"
    assert found["permissive"].more_bytes == pytest.approx(2 * MB), "poor.com's parked URLs, each as those before"
    assert found["0.02"].retired == 3
    spared = (100 - 0.8) + (80 - 0.64) + (10 - 1.6)  # MB beyond 8 pages of each host
    assert found["0.02"].spared_share == pytest.approx(spared / 201)
    assert found["0.02"].lost_share == pytest.approx((2 * 0.992 + 0.5 * 0.992) / 7.5)


def test_hosts_that_are_retired_are_counted_once_and_the_same_everywhere():
    """They were retired by what they had given then; by what they gave in all, the rule would find others."""
    hosts = hosts_of(
        ("was.cz", "retired", 1000, 50 * MB, 2 * MB, 10),
        ("late.cz", "exhausted", 1000, 50 * MB, MB // 4, 0),
        ("rich.cz", "exhausted", 1000, 50 * MB, 20 * MB, 0),
    )
    given = material(hosts)
    found = {profile.name: profile.retired for profile in tables.profiles(given)}
    assert tables.retired_by(given, 0.005).tolist() == [False, True, False]
    assert found == {"off": 0, "permissive": 0, "normal": 1, "paper": 2, "0.02": 2}
    assert {tile.name: tile.note for tile in tiles(given)}["hosts"] == "1 retired"
    assert any(line.startswith("1 host was retired") for line in advice(given))
    assert "1 retired" in dict(tables.summary(given).rows)["Hosts"]


def test_tiles_show_what_a_crawl_has_come_to():
    given = material(HOSTS, ((1, 0, 0, 0, 0), (7200, 300, 5000, 40 * MB, 4 * MB)),
                     {"total/words": 5000, "total/documents": 1, "total/time_s": 7200, "waiting": 12,
                      "total/bound/DNS": 3, "total/bound/hosts": 1})  # fmt: skip
    found = {tile.name: (tile.value, tile.note) for tile in tiles(given)}
    assert found["words"] == ("5,000", "in 1 document")
    assert found["words an hour"][0] == "2,500"
    assert found["downloaded"] == ("40.0 MB", "0.0056 MB a second")
    assert found["kept"] == ("4.0 MB", "yield rate 0.1000")
    assert found["running time"] == ("2 h", "")
    assert found["bound by"] == ("DNS", "in 3 of 4 progress lines")
    assert "some 1 h left by budget" in {tile.note for tile in tiles(dataclasses.replace(given, left_s=3600.0))}


def test_a_profile_of_the_users_own_is_among_them():
    names = [row[0] for row in tables.profile_table(material(HOSTS, yield_profile="0.003")).rows]
    assert names == ["off", "permissive", "0.003 (used)", "normal", "paper", "0.02"]


@pytest.mark.parametrize("strategy", ["bfs", "heidix", "lswc:s=3,t=5"])
def test_a_strategy_that_retires_nobody_uses_no_profile(strategy):
    names = [row[0] for row in tables.profile_table(material(HOSTS, strategy=strategy)).rows]
    assert names == ["off (used)", "permissive", "normal", "paper", "0.02"]


def test_words_by_top_level_domain():
    rows = tables.by_tld(material(HOSTS)).rows
    assert [row[:2] for row in rows] == [("cz", 2), ("com", 2), ("sk", 1)]
    assert rows[0][3] == 7 * MB


def test_hosts_that_cost_and_gave_most():
    given = material(HOSTS)
    (all_of_them,) = tables.notable_hosts(given)
    assert [row[0] for row in all_of_them.rows] == ["rich.cz", "fair.cz", "poor.com", "bare.com", "new.sk"]
    many = hosts_of(*((f"h{n}.cz", "ready", 10, n * MB, 60 * MB - n * MB, 0) for n in range(51)))
    best, dearest = tables.notable_hosts(material(many))
    assert (best.rows[0][0], dearest.rows[0][0], len(best.rows)) == ("h0.cz", "h50.cz", 25)
    assert [row[0] for row in tables.left_alone(given).rows] == ["poor.com", "bare.com"]


def test_what_a_mirror_has_left_is_not_wanted():
    hosts = hosts_of(("a.cz", "ready", 9, MB, MB, 0), ("b.cz", "mirror", 9, MB, 0, 50), ("c.cz", "spent", 9, MB, 0, 7))
    assert [row[-1] for row in tables.notable_hosts(material(hosts))[0].rows] == [0, 0, 7]


def test_seeds_are_counted_by_end_and_shown_best_host_first():
    given = material(HOSTS)
    given.seeds.extend(Seed(f"h{n}.cz", "ready", n, f"http://h{n}.cz/", "kept" if n % 2 else "") for n in range(100))
    assert [row[:2] for row in tables.seeds_by_end(given).rows] == [("waits", 50), ("kept", 50)]
    shown = [row[0] for row in tables.seeds(given).rows]
    assert shown == [f"http://h{n}.cz/" for n in [*range(99, 74, -1), *range(24, -1, -1)]]


def test_a_crawl_of_nothing_has_tables_too():
    given = material()
    names = "summary papers thresholds profile_table notable_hosts by_tld by_distance seeds ends"
    for name in names.split():
        getattr(tables, name)(given)


@pytest.mark.parametrize("seconds", [0, 59, 60, 86400 * 40])
def test_a_length_of_time_is_never_empty(seconds):
    assert tables.duration(seconds)
