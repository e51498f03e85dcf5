"""Whose fault it is that nothing answers: what is held back, and by what it is decided."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.options import Options
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import HostState
from spiderling.frontier.reachability import (
    DOUBT_S,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MAX_HOSTS,
    NetworkState,
    Reachability,
    Trouble,
)


class Crawl:
    """The verdicts that came, by host: whether it was the host's fault."""

    def __init__(self, *answered: str) -> None:
        self.known = Reachability()
        self.verdicts: list[tuple[str, bool]] = []
        for origin in answered:
            self.known.host_answered(origin, 0.0, 0.0)

    def fails(self, host: str, now: float, trouble: Trouble = Trouble.CONNECTION, begun: float | None = None) -> None:
        self.known.failed(
            host, trouble, now if begun is None else begun, now, lambda theirs: self.verdicts.append((host, theirs))
        )

    def told(self) -> list[tuple[str, bool]]:
        """The verdicts since the last call."""
        for over, theirs in self.known.decided():
            over(theirs)
        told, self.verdicts = self.verdicts, []
        return told


def test_a_host_is_charged_once_another_one_answers_a_later_request() -> None:
    crawl = Crawl()
    crawl.fails("dead.cz", 10.0)
    crawl.known.host_answered("http://a.cz", 9.0, 9.0)
    assert crawl.told() == [], "the network may have gone since"
    crawl.known.host_answered("http://a.cz", 11.0, 11.0)
    assert crawl.told() == [("dead.cz", True)]
    assert crawl.known.look(5, 1000.0) is NetworkState.THERE


def test_a_name_server_is_judged_by_its_own_answers() -> None:
    crawl = Crawl("http://a.cz")
    crawl.fails("lame.cz", 10.0, Trouble.NAME_SERVER)
    crawl.fails("dead.cz", 10.0)
    crawl.known.host_answered("http://a.cz", 11.0, 11.0)
    assert crawl.told() == [("dead.cz", True)], "its address was known: that tells nothing of the name servers"
    crawl.known.name_answered("a.cz", 12.0, 12.0)
    assert crawl.told() == [("lame.cz", True)]


def test_where_name_servers_fail_a_name_is_asked_for_that_they_knew() -> None:
    """A host whose address is fixed (SPIDERLING_HOSTS) tells nothing of them."""
    crawl = Crawl("http://fixed.cz")
    crawl.known.name_answered("a.cz", 1.0, 1.0)
    crawl.fails("lame.cz", 10.0, Trouble.NAME_SERVER)
    crawl.fails("dead.cz", 10.0)
    assert crawl.known.look(2, 10.0) is NetworkState.DOUBTED
    assert crawl.known.next_probe() == "http://a.cz"
    crawl.known.name_answered("a.cz", 11.0, 11.0)
    crawl.known.probed(11.0)
    assert crawl.told() == [("lame.cz", True)] and crawl.known.network is NetworkState.DOUBTED
    assert crawl.known.next_probe() == "http://fixed.cz", "for the other trouble"
    crawl.known.probed(12.0)
    assert crawl.known.is_away and crawl.told() == [("dead.cz", False)]


def test_when_all_hosts_fail_one_that_answered_before_is_probed_first() -> None:
    crawl = Crawl("http://a.cz", "https://b.cz")
    crawl.fails("c.cz", 10.0)
    assert crawl.known.look(2, 10.0) is NetworkState.THERE
    crawl.fails("d.cz", 10.0)
    assert crawl.known.look(2, 10.0) is NetworkState.DOUBTED and not crawl.known.is_away
    assert crawl.known.next_probe() == "https://b.cz"
    crawl.known.host_answered("https://b.cz", 11.0, 11.0)
    assert crawl.told() == [("c.cz", True), ("d.cz", True)], "the network is there, and they are not"


def test_when_that_one_does_not_answer_either_nothing_is_charged_and_the_crawl_waits() -> None:
    crawl = Crawl("http://a.cz")
    crawl.fails("a.cz", 10.0)
    assert crawl.known.look(1, 10.0) is NetworkState.DOUBTED
    crawl.known.next_probe()
    crawl.known.probed(11.0)
    assert crawl.known.is_away and crawl.told() == [("a.cz", False)]
    assert crawl.known.summary(1) == "1 of 1 hosts fail: connection"
    crawl.fails("late.cz", 12.0, Trouble.TIMEOUT)
    assert crawl.told() == [], "it had been asked before"
    crawl.known.host_answered("http://a.cz", 20.0, 20.0)
    assert crawl.told() == [("late.cz", False)] and crawl.known.network is NetworkState.THERE
    crawl.fails("later.cz", 30.0, Trouble.TIMEOUT, begun=19.0)
    assert crawl.told() == [("later.cz", False)], "it was begun while the network was away"


def test_many_hosts_in_a_row_are_enough_and_so_is_some_time() -> None:
    crawl = Crawl("http://a.cz")
    for number in range(MAX_HOSTS):
        assert crawl.known.look(5000, 10.0) is NetworkState.THERE
        crawl.fails(f"h{number}.cz", 10.0)
    assert crawl.known.look(5000, 10.0) is NetworkState.DOUBTED
    crawl = Crawl("http://a.cz")
    crawl.fails("dead.cz", 10.0)
    assert crawl.known.look(5000, 10.0 + DOUBT_S) is NetworkState.DOUBTED


def test_names_that_do_not_exist_are_waited_for_only_where_something_answered_before() -> None:
    crawl = Crawl()
    crawl.fails("no.cz", 10.0, Trouble.NO_SUCH_NAME)
    assert crawl.known.look(1, 10.0) is NetworkState.UNKNOWN_NAMES and crawl.known.failing(10) == "no.cz"
    crawl.known.give_up()
    assert crawl.told() == [("no.cz", False)]
    crawl = Crawl()
    crawl.fails("no.cz", 10.0, Trouble.NO_SUCH_NAME)
    crawl.fails("dead.cz", 10.0)
    assert crawl.known.look(2, 10.0) is NetworkState.AWAY, "no connection succeeds at all"


def test_a_shard_none_of_whose_hosts_ever_answered_goes_by_what_others_get() -> None:
    crawl = Crawl()
    crawl.known.others_answered(5.0)
    crawl.fails("no.cz", 10.0, Trouble.NO_SUCH_NAME)
    crawl.fails("dead.cz", 11.0)
    crawl.fails("late.cz", 30.0, Trouble.TIMEOUT)
    assert crawl.known.look(3, 40.0) is NetworkState.THERE and not crawl.told()
    crawl.known.others_answered(20.0)
    assert crawl.told() == [("no.cz", True), ("dead.cz", True)], "what failed later is not known yet"
    assert crawl.known.look(1, 20.0 + LONGEST_PAUSE_S) is NetworkState.AWAY and crawl.told() == [("late.cz", False)]
    crawl.known.others_answered(100.0)
    assert crawl.known.look(1, 100.0) is NetworkState.THERE

    for of_its_own in (Crawl("http://a.cz"), Crawl()):
        of_its_own.known.others_answered(10.0)
        of_its_own.fails("h", 11.0, Trouble.NAME_SERVER)
        assert of_its_own.known.look(1, 12.0) is not NetworkState.THERE, "its own name server, or an answer, tells more"
        of_its_own.known.others_answered(13.0)
        assert ("h", True) not in of_its_own.told()


def test_a_network_that_was_away_is_proven_by_a_name_that_exists_or_a_host_that_answers() -> None:
    for proof in (
        lambda known: known.name_answered("a.cz", 13.0, 13.0),
        lambda known: known.host_answered("h", 13, 13),
    ):
        crawl = Crawl("http://h")
        crawl.fails("a.cz", 10.0, Trouble.NAME_SERVER)
        crawl.fails("b.cz", 10.0)
        assert crawl.known.look(2, 10.0) is NetworkState.AWAY
        crawl.known.name_answered("no.cz", 12.0, 12.0, exists=False)
        assert crawl.known.look(2, 1000.0) is NetworkState.AWAY, "a router without a network may say that"
        proof(crawl.known)
        assert crawl.known.network is NetworkState.THERE


def test_a_name_server_that_knows_nothing_charges_no_host() -> None:
    """A router without a network answered a part of the queries; the hosts of the others were charged for it."""
    crawl = Crawl()
    crawl.fails("slow.cz", 10.0, Trouble.NAME_SERVER)
    crawl.known.name_answered("no.cz", 11.0, 11.0, exists=False)
    crawl.fails("no.cz", 11.0, Trouble.NO_SUCH_NAME)
    assert crawl.told() == []
    assert crawl.known.look(9, 10.0 + DOUBT_S) is NetworkState.AWAY, "no name to be asked for could end a doubt"
    assert crawl.told() == [("slow.cz", False), ("no.cz", False)]
    assert crawl.known.summary(9) == "2 of 9 hosts fail: dns"


def test_names_that_do_not_exist_are_no_network_after_ten_seconds_though_others_are_asked_for() -> None:
    """A crawl waited for a minute, since nine of 69 look-ups were still under way."""
    crawl = Crawl()
    for number in range(60):
        crawl.fails(f"h{number}.cz", 10.0, Trouble.NO_SUCH_NAME)
    assert crawl.known.look(69, 9.9 + DOUBT_S) is NetworkState.THERE, "old names at a start are usual"
    assert crawl.known.look(69, 10.0 + DOUBT_S) is NetworkState.AWAY
    assert crawl.known.summary(69) == "60 of 69 hosts fail: no such name"
    assert crawl.known.look(69, 9.9 + DOUBT_S + LONGEST_PAUSE_S) is NetworkState.AWAY
    assert crawl.known.look(69, 10.0 + DOUBT_S + LONGEST_PAUSE_S) is NetworkState.UNKNOWN_NAMES
    crawl = Crawl()
    crawl.known.name_answered("slow.cz", 1.0, 1.0)
    crawl.fails("old.cz", 10.0, Trouble.NO_SUCH_NAME)
    assert crawl.known.look(2, 1000.0) is NetworkState.THERE, "the host whose name exists has its time to answer"


def test_names_that_failed_are_asked_for_at_once_when_one_turns_out_not_to_exist() -> None:
    crawl = Crawl()
    crawl.fails("no.cz", 10.0, Trouble.NO_SUCH_NAME)
    hosts = [f"h{number}.cz" for number in range(30)]
    for host in hosts:
        crawl.fails(host, 10.0, Trouble.NAME_SERVER)
    asked, now = [], 10.0
    while crawl.known.look(31, now) is NetworkState.AWAY:
        now += crawl.known.probe_in(now)
        assert now < 20.0
        asked.append(crawl.known.next_probe().removeprefix("http://"))
        crawl.known.name_answered(asked[-1], now, now, exists=False)
        crawl.known.probed(now)
    assert asked == hosts and crawl.known.network is NetworkState.UNKNOWN_NAMES


def test_a_doubt_whose_witness_is_used_up_is_judged_anew() -> None:
    """It stayed a doubt, with nothing to be probed, until another host failed."""
    crawl = Crawl()
    crawl.known.name_answered("a.cz", 1.0, 1.0)
    crawl.fails("lame.cz", 10.0, Trouble.NAME_SERVER)
    crawl.fails("dead.cz", 10.0)
    assert crawl.known.look(2, 10.0) is NetworkState.DOUBTED
    crawl.known.name_answered("a.cz", 11.0, 11.0)
    crawl.known.probed(11.0)
    assert crawl.told() == [("lame.cz", True)] and crawl.known.look(1, 11.0) is NetworkState.AWAY


def test_pauses_between_probes_grow_to_a_minute_and_all_hosts_have_their_turn() -> None:
    crawl = Crawl("http://a.cz", "http://b.cz")
    crawl.fails("c.cz", 10.0)
    crawl.known.look(1, now := 10.0)
    pauses, probed = [], []
    for _ in range(9):
        pauses.append(crawl.known.probe_in(now))
        now += pauses[-1]
        probed.append(crawl.known.next_probe())
        crawl.known.probed(now)
    assert pauses == [0.0] + [min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S) for n in range(8)]
    assert probed == ["http://b.cz", "http://a.cz", "http://c.cz"] * 3


def test_hosts_that_were_not_asked_yet_are_probed_when_all_that_were_are_dead() -> None:
    """A list of seeds that begins with dead hosts kept the crawl waiting for them for a day."""
    crawl = Crawl()
    for name in ("dead.cz", "b.cz", "c.cz"):
        crawl.known.name_answered(name, 1.0, 1.0)
    crawl.fails("dead.cz", 2.0)
    assert crawl.known.look(3, 2.0 + DOUBT_S) is NetworkState.AWAY
    assert {crawl.known.next_probe() for _ in range(3)} == {"http://dead.cz", "http://b.cz", "http://c.cz"}


def test_a_host_that_must_not_be_asked_now_leaves_the_doubt_and_the_crawl_goes_on() -> None:
    """Its next page tells as well as a probe; else a crawl with one slow host would do nothing but probe it."""
    crawl = Crawl("http://slow.cz")
    crawl.fails("dead.cz", 10.0)
    assert crawl.known.look(2, 10.0 + DOUBT_S) is NetworkState.DOUBTED
    for now in (20.0, 30.0):
        assert crawl.known.next_probe() == "http://slow.cz"
        crawl.known.probe_later(now)
        assert not crawl.known.is_away and crawl.told() == []
    crawl.known.host_answered("http://slow.cz", 120.0, 120.0)
    assert crawl.told() == [("dead.cz", True)]


def test_a_doubt_that_no_name_can_settle_means_that_the_network_is_away() -> None:
    """One host answered, another does not exist; then the name servers fail, of which no answer is known."""
    crawl = Crawl("http://a.cz")
    crawl.fails("none.cz", 1.0, Trouble.NO_SUCH_NAME)
    assert crawl.known.look(1, 1.0) is NetworkState.DOUBTED
    crawl.fails("b.cz", 2.0, Trouble.NAME_SERVER)
    assert crawl.known.is_away and crawl.known.next_probe() == "http://a.cz"


def test_a_host_that_the_user_blocked_is_not_probed() -> None:
    crawl = Crawl("http://a.cz", "http://blocked.cz")
    crawl.fails("dead.cz", 10.0)
    crawl.known.look(1, 10.0)
    crawl.known.forget("http://blocked.cz", 10.0)
    assert crawl.known.next_probe() == "http://a.cz" and not crawl.known.is_away
    crawl.known.forget("http://a.cz", 11.0)
    assert crawl.known.is_away and crawl.known.next_probe() == "http://dead.cz"


def test_a_host_that_has_moved_to_another_shard_is_not_probed() -> None:
    frontier = Frontier(Options(lang="cs"), lambda address: True)
    frontier.put_seed("http://a.cz/", 0.0)
    host = frontier.host("a.cz")
    assert host is not None and frontier.probes.may_ask(host)
    host.state = HostState.MOVED
    assert not frontier.probes.may_ask(host)


def test_what_answered_survives_the_process() -> None:
    state = Crawl(*(f"http://h{number}.cz" for number in range(30))).known.state()
    later = Reachability()
    later.restore(state)
    assert later.has_answered and later.next_probe() == "http://h29.cz" and len(later.origins) < 10
    fresh = Reachability()
    fresh.restore({})
    assert not fresh.has_answered and fresh.state() == {}


EVENTS = st.tuples(
    st.sampled_from(["fail", "answer", "name", "look", "probe", "others"]),
    st.integers(0, 5),
    st.sampled_from(list(Trouble)),
)


@given(st.lists(EVENTS, max_size=60))
def test_every_failure_gets_one_verdict_and_none_is_charged_while_the_network_is_away(events: list) -> None:
    crawl, number = Crawl(), 0
    for now, (what, host, trouble) in enumerate(events):
        if what == "fail":
            crawl.fails(f"{number}", float(now), trouble)
            number += 1
        elif what == "answer":
            crawl.known.host_answered(f"http://h{host}.cz", now - host / 2, float(now))
        elif what == "name":
            crawl.known.name_answered(f"h{host}.cz", now - host / 2, float(now))
        elif what == "look":
            crawl.known.look(host, float(now))
        elif what == "others":
            crawl.known.others_answered(float(now))
        elif crawl.known.network in (NetworkState.DOUBTED, NetworkState.AWAY):
            assert crawl.known.next_probe()
            crawl.known.probed(float(now))
        if crawl.known.is_away:
            assert crawl.known.summary(host)
    crawl.known.give_up()
    told = crawl.told()
    assert sorted(int(host) for host, _ in told) == list(range(number))
