"""What is said of few seeds."""

from __future__ import annotations

import pytest

from spiderling.seeds import few_hosts


def test_few_hosts() -> None:
    urls = [f"http://h{number}.cz/{page}" for number in range(73) for page in range(3)]
    told = few_hosts(urls, "cs", 5.0)
    assert told.startswith("73 seed hosts, asked every 5 s, give at most 14.6 pages/s")
    assert told.endswith(
        "scrapy seeds wikipedia cswiki-latest-externallinks.sql.gz -a lang=cs -o seeds.txt --per-host 1"
    )
    assert "https://dumps.wikimedia.org/cswiki/latest/cswiki-latest-externallinks.sql.gz," in told
    assert "/nowiki/latest/nowiki-" in few_hosts(urls, "nb", 5.0)


@pytest.mark.parametrize(("hosts", "interval_s"), [(100, 5.0), (3, 0.0)])
def test_enough_hosts(hosts: int, interval_s: float) -> None:
    assert few_hosts([f"http://h{number}.cz/" for number in range(hosts)], "cs", interval_s) == ""
