"""Which page is worth another revisit: rates that pages of a class share, dates that must earn trust, the index."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from spiderling.base.errors import DamageError
from spiderling.frontier.recrawl.policy import (
    CLASSES,
    FEED,
    HALF_LIFE_DAYS,
    HUB,
    NEW,
    OLDEST,
    PAGE,
    PRIOR_RATE,
    STARTS_DAYS,
    Announcements,
    ChangeRates,
    Column,
    Pages,
    RecrawlPolicy,
    RevisitCandidate,
    RevisitResult,
    Tables,
    days_by_class,
    page_class,
)


def column(*values: float) -> Column:
    return np.array(values)


@pytest.mark.parametrize("kind", range(CLASSES))
def test_a_class_of_which_nothing_is_known_has_its_prior(kind: int) -> None:
    assert ChangeRates().rate(7, kind) == pytest.approx(PRIOR_RATE)


def test_a_host_that_was_looked_at_often_goes_by_itself_and_a_new_one_by_the_others() -> None:
    rates = ChangeRates()
    for day in range(40):
        for host in range(1, 12):
            rates.learn(host, OLDEST, 2 * (host == 1), 0, 1.0, day)
    busy, idle, unknown = (rates.rate(host, OLDEST) for host in (1, 2, 99))
    assert busy == pytest.approx(2.0, rel=0.15)
    assert idle < 0.02 and unknown == pytest.approx(2 / 11, rel=0.2)
    assert rates.rate(1, HUB) == pytest.approx(PRIOR_RATE), "classes are apart"


def test_what_was_learnt_counts_half_after_the_half_life() -> None:
    rates = ChangeRates()
    rates.learn(1, HUB, 1000, 0, 1000.0, 0.0)
    rates.learn(1, HUB, 0, 0, 1000.0, HALF_LIFE_DAYS)
    assert rates.rate(1, HUB) == pytest.approx(1 / 3, rel=0.01)


def test_a_class_that_is_no_longer_looked_at_keeps_its_rate() -> None:
    rates = ChangeRates()
    for host in (1, 2):
        rates.learn(host, OLDEST, 20, 0, 100.0, 10.0)
    before = rates.rate(1, OLDEST)
    rates.learn(1, HUB, 1, 0, 1.0, 500.0)
    assert rates.rate(1, OLDEST) == pytest.approx(before) == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize(
    ("times", "events", "step_days"), [(60, 365, 365.0), (48, 1000, 360_000.0)],
    ids=["many years", "a trial with days of a hundredth of a second"],
)  # fmt: skip
def test_sums_are_numbers_still(times: int, events: int, step_days: float) -> None:
    rates = ChangeRates()
    for number in range(times):
        rates.learn(1, FEED, events, events * 80, float(events), number * step_days)
    assert rates.rate(1, FEED) == pytest.approx(1.0, rel=0.01)
    assert rates.words(1, FEED) == pytest.approx(80, rel=0.01)


def test_words_of_an_event_are_pooled_like_rates() -> None:
    rates = ChangeRates()
    for host, words in ((1, 50), (2, 400)):
        for _ in range(100):
            rates.learn(host, NEW, 1, words, 0.0, 1.0)
    assert [rates.words(host, NEW) for host in (1, 2, 3)] == pytest.approx([50, 400, 225], rel=0.04)


def test_a_page_ages() -> None:
    assert [page_class(days) for days in (0, 0.9, 1.1, 5, 31, 33, float("inf"))] == [0, 0, 1, 3, 5, OLDEST, OLDEST]


def test_dates_that_say_what_is_true_are_believed_and_those_that_change_daily_are_not() -> None:
    true, lying = Announcements(), Announcements()
    for _ in range(10):
        true.learn(was_announced=True, has_new_text=True, expected_events=0.01, last=0.0)
        lying.learn(was_announced=True, has_new_text=False, expected_events=0.01, last=0.0)
    assert true.is_believed and true.trust > 0.9 and not lying.is_believed and lying.trust < 0.2


def test_a_page_that_changes_anyway_neither_proves_a_date_nor_disproves_it() -> None:
    dates = Announcements()
    for has_new_text in (True, False, True):
        dates.learn(was_announced=True, has_new_text=has_new_text, expected_events=0.9, last=0.0)
    assert (dates.right, dates.wrong) == (2.0, 1.0)


def test_a_change_that_no_sitemap_since_then_could_know_was_not_missed() -> None:
    dates = Announcements(made=5.0)
    for last, missed in ((6.0, 1.0), (4.0, 2.0)):
        dates.learn(was_announced=False, has_new_text=True, expected_events=0.01, last=last)
        assert dates.missed == missed
    assert dates.recall == pytest.approx(1 / 3)


def test_events_since_birth_add_up_over_the_ages() -> None:
    policy = RecrawlPolicy()
    for kind in range(OLDEST):
        policy.rates.learn(1, kind, kind, 50 * kind, 3, 0)
    rate, before = policy.tables([1, 2])[1:3]
    assert np.diff(before[:, : OLDEST + 1]) == pytest.approx(rate[:, :OLDEST] * np.diff(STARTS_DAYS))
    assert not before[:, 0].any()


def test_a_look_after_long_is_counted_for_each_age_that_the_page_had() -> None:
    """Replies come in the first days; who revisits only when the page is old must not take them for an old page's."""
    assert days_by_class(0.5, 5.0) == [(0, 0.5), (1, 1.0), (2, 2.0), (3, 1.0)]
    assert days_by_class(40.0, 50.0) == [(OLDEST, 10.0)]
    rates = ChangeRates()
    for _ in range(500):
        rates.learn_page(1, 1, 80, 0.0, 1.0, 0.0)
        rates.learn_page(1, 0, 0, 8.0, 16.0, 0.0)
        rates.learn_page(1, 1, 80, 0.0, 16.0, 0.0)
    assert rates.rate(1, 0) > 0.8 and rates.rate(1, 4) < 0.02
    assert rates.words(1, 0) == pytest.approx(80, rel=0.01)


def index(rate, last, dates=None, is_announced=False, kind=PAGE, **more):
    """That of a revisit on the day 10 of an old page with *rate* events a day, of one word each."""
    policy = RecrawlPolicy(more.get("min_word_days", 0.0))
    policy.dates[1] = dates or Announcements()
    rates = np.full((1, CLASSES), rate)
    tables = Tables([1], rates, np.zeros_like(rates), np.full_like(rates, more.get("words", 1.0)))
    pages = Pages(np.zeros(1, int), np.array([kind]), column(-1000), column(last), np.array([is_announced]))
    return float(policy.worth(tables, pages, 10.0)[0])


def test_a_page_that_believed_dates_leave_out_is_unknown_only_since_the_newest_of_them() -> None:
    dates = Announcements(9, 1, 9, 0, made=8.0)
    assert index(0.1, 2, dates) == pytest.approx(0.1 * 2**2)
    assert index(0.1, 9, dates) == pytest.approx(0.1 * 1**2)
    assert index(0.1, 2, dates, kind=HUB) == pytest.approx(0.1 * 8**2), "dates are those of pages"
    assert index(0.1, 2, Announcements(1, 9, 9, 0, made=8.0)) == pytest.approx(0.1 * 8**2), "they are not believed"
    assert index(0.1, 2, Announcements(9, 1, 9, 0)) == pytest.approx(0.1 * 8**2), "there are none"


def test_what_dates_missed_before_is_expected_besides() -> None:
    recall_of_three_quarters = Announcements(9, 1, 3, 1, made=8.0)
    assert index(0.1, 2, recall_of_three_quarters) == pytest.approx((0.2 + 0.6 / 4) * (2 + 6 / 4))


@pytest.mark.parametrize(("rate", "is_announced", "events"), [(0.003, True, 0.8), (0.003, False, 0.03), (0.3, True, 3)])
def test_an_announced_page_is_expected_to_have_something_as_far_as_dates_are_trusted(rate, is_announced, events):
    assert index(rate, 0, Announcements(8, 2), is_announced) == pytest.approx(events * 10)


def test_the_wait_counts_squared_and_the_rate_once() -> None:
    assert index(0.4, 8) == pytest.approx(4 * index(0.4, 9)) == pytest.approx(index(0.1, 6))


def test_a_look_is_worth_more_where_an_event_has_more_words() -> None:
    policy = RecrawlPolicy()
    for host, words in ((1, 50), (2, 400)):
        for _ in range(50):
            policy.learn(RevisitCandidate(host, PAGE, -100.0, 0.0, False), RevisitResult(words), 10.0)
            policy.learn(RevisitCandidate(host, PAGE, -100.0, 0.0, False), RevisitResult(), 10.0)
    last = column(5, 5)
    pages = Pages(np.arange(2), np.full(2, PAGE), column(-100, -100), last, np.zeros(2, bool))
    few, many = policy.worth(policy.tables([1, 2]), pages, 10.0)
    assert many == pytest.approx(8 * few, rel=0.1)


@pytest.mark.parametrize(("rate", "words", "worth"), [(0.01, 20, 0.0), (0.01, 200, 200.0), (0.05, 20, 100.0)])
def test_a_look_of_which_too_few_words_are_expected_is_worth_nothing(rate: float, words: float, worth: float) -> None:
    assert index(rate, 0, words=words, min_word_days=50) == pytest.approx(worth)


def test_rates_come_back_as_they_were_of_one_host_and_of_all() -> None:
    policy, again = RecrawlPolicy(), RecrawlPolicy()
    for day in range(9):
        policy.rates.learn(5, HUB, 2, 300, 1.5, day)
        policy.rates.learn(70, OLDEST, 0.3, 7, 11, day)
    for host in (0, 5, 70):
        again.restore(host, policy.pack(host))
    hosts = [5, 6, 70, 1000]
    for table, same in zip(policy.rates.tables(hosts), again.rates.tables(hosts), strict=True):
        assert np.array_equal(table, same)
    assert not again.dates, "nothing is kept of hosts without dates"
    for of_one, table in zip((policy.rates.rate, policy.rates.words), policy.rates.tables(hosts), strict=False):
        for kind in (HUB, OLDEST):
            assert [of_one(host, kind) for host in hosts] == pytest.approx(table[:, kind])


@pytest.mark.parametrize("host", [0, 5])
def test_damaged_rates_are_named(host: int) -> None:
    whole = RecrawlPolicy().pack(host)
    for row in (b"", whole[:-1], zlib.compress(zlib.decompress(whole)[:-4])):
        with pytest.raises(DamageError, match=f"rates of host {host}"):
            RecrawlPolicy().restore(host, row)
