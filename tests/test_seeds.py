"""Kinds of seeds and their distance; what is said of few seeds."""

from __future__ import annotations

import pytest

from spiderling.languages.seeds import distances, few_hosts, read_seeds


def test_few_hosts() -> None:
    urls = [f"http://h{number}.cz/{page}" for number in range(73) for page in range(3)]
    told = few_hosts(urls, "cs", 5.0)
    assert told.startswith("73 seed hosts, asked every 5 s, can give at most 14.6 pages/s")
    assert few_hosts(urls[:1], "cs", 5.0).startswith("1 seed host, asked every 5 s, can give at most 0.2 pages/s")
    assert told.endswith(
        "scrapy seeds wikipedia cswiki-latest-externallinks.sql.gz -a lang=cs -o seeds.txt --per-host 1"
    )
    assert "https://dumps.wikimedia.org/cswiki/latest/cswiki-latest-externallinks.sql.gz," in told
    assert "/nowiki/latest/nowiki-" in few_hosts(urls, "nb", 5.0)


@pytest.mark.parametrize(("hosts", "interval_s"), [(100, 5.0), (3, 0.0)])
def test_enough_hosts(hosts: int, interval_s: float) -> None:
    assert few_hosts([f"http://h{number}.cz/" for number in range(hosts)], "cs", interval_s) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.cz\n# news\nb.cz\n", [0, 0]),
        ("# news (trusted)\na.cz\n# trusted\nb.cz\n#\nc.cz\n# (trusted)\nd.cz\n", [0, 1, 1, 0]),
    ],
)
def test_only_trusted_seeds_are_at_distance_0_where_there_are_any(tmp_path, text, expected) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(text)
    assert [distance for _, distance in distances(read_seeds(str(path)))] == expected
