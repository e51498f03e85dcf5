"""One crawl of all hostile cases together with good hosts: it ends, and the good hosts do not suffer."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import paragraphs
from hostile import CASES
from hostile_crawl import GOOD, GOOD_PAGES, crawl_all, failures, summary

from spiderling.base.reasons import MENTIONS, Reason

pytestmark = pytest.mark.slow  # a minute; tests/fetch tries the answers one by one

MAIN_CEILING_MB = 350
WORKER_CEILING_MB = 300


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    return crawl_all(tmp_path_factory.mktemp("hostile") / "job")


def test_the_crawl_ends_and_says_nothing_of_errors(crawled):
    output = crawled.result.output
    assert crawled.result.code == 0, output[-3000:]
    assert crawled.result.lines("is finished.")
    for word in ("Traceback", "] ERROR", "] CRITICAL", "Unclosed", "was never retrieved", "was never awaited"):
        assert word not in output, output[output.index(word) - 1000 :][:3000]
    crawled.crawl.state().check()


def test_the_documents_of_the_good_hosts_are_all_there(crawled):
    documents = {doc.url: doc.paragraphs for doc in crawled.crawl.documents()}
    for number, host in enumerate(GOOD):
        assert documents[f"http://{host}/"] == paragraphs(f"good {number}")
        for n in range(1, GOOD_PAGES):
            assert documents[f"http://{host}/{n}"] == paragraphs(f"good {number} {n}")


def test_memory_stays_under_its_ceiling(crawled):
    assert 30 < crawled.main_mb < MAIN_CEILING_MB
    assert 30 < crawled.worker_mb < WORKER_CEILING_MB


def test_each_case_ends_by_its_reason(crawled, record_property):
    found = failures(crawled)
    record_property("summary", summary(crawled))
    assert len(found) >= 60
    assert "\n".join(line for lines in found.values() for line in lines) == ""


def test_mentions_are_refused_as_often_as_the_cases_say(crawled):
    counts: Counter[str] = Counter()
    uncounted = set()
    for case in CASES.values():
        for reason, number in case.mentions.items():
            counts[reason.value] += 1 if number is None else number
            uncounted |= set() if number is not None else {reason.value}
    found = Counter(crawled.crawl.state().mentions)
    for reason in MENTIONS - {Reason.SEEN}:
        assert found[reason.value] >= counts[reason.value]
        assert found[reason.value] == counts[reason.value] or reason.value in uncounted


def test_cookies_are_sent_only_to_whom_redirects_by_them(crawled):
    assert len(crawled.web.requests) > 2 * len(CASES) * 0.8
    sent = [case for case, head in crawled.web.requests if b"\r\ncookie:" in head.lower()]
    assert sorted(sent) == ["redirect-over-cookies"] * 2 + ["redirect-to-cookies"]


def test_a_rebinding_name_is_judged_again_and_not_connected_to_and_a_dead_one_is_not_asked_for_again(crawled):
    """NXDOMAIN is final for a while; servers that fail are asked once more, each time by three attempts, or by six
    if the malformed answer of the case 'garbage' came between."""
    asked = crawled.names.server.asked
    assert crawled.names.server.served["rebinding.names.test"] == {"/"} and asked["rebinding.names.test", "A"] >= 2
    assert asked["unknown.names.test", "A"] == 1
    assert 2 <= asked["silent.names.test", "A"] <= 2 * 6
