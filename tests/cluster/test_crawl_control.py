"""One control.yaml for all shards: the last text that somebody wrote holds, on each machine, whatever Redis loses."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from example_counts import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spiderling.base.errors import BadInput
from spiderling.cluster import crawl_control
from spiderling.cluster.crawl_control import FIRST, CrawlControl, Edition
from spiderling.jobdir.control_file import TEMPLATE

PAUSE = "pause: true\n"


class Machine:
    """A directory with the control.yaml of some shards."""

    def __init__(self, path: Path, shards: int = 2) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.file = path / "control.yaml"
        self.shards = [CrawlControl(path, FIRST) for _ in range(shards)]

    def start(self, shard: int) -> None:
        """Start a shard again, which has kept what it knew."""
        self.shards[shard] = CrawlControl(self.path, self.shards[shard].newest)


class Redis:
    edition: Edition | None = None

    def beat(self, shard: CrawlControl) -> None:
        shard.changed_text()
        if shard.to_publish is not None:
            self.edition = shard.to_publish
        shard.merge(self.edition)

    def beats(self, *machines: Machine) -> None:
        for _ in range(5):
            for machine in machines:
                for shard in machine.shards:
                    self.beat(shard)
                    shard.changed_text()


def test_a_text_reaches_all_shards_of_all_machines(tmp_path: Path) -> None:
    here, there, redis = Machine(tmp_path / "a"), Machine(tmp_path / "b"), Redis()
    redis.beats(here, there)
    assert here.file.read_text() == there.file.read_text() == TEMPLATE
    here.file.write_text(PAUSE)
    assert here.shards[1].changed_text() == PAUSE and here.shards[1].changed_text() is None
    for _ in range(2):  # what stands in Redis is looked at first
        redis.beat(here.shards[1])
    redis.beat(there.shards[0])
    assert there.shards[0].changed_text() == PAUSE
    assert there.file.read_text() == PAUSE, "who looks into the file sees what holds"
    redis.beats(here, there)
    assert {shard.newest for shard in (*here.shards, *there.shards)} == {Edition(1, PAUSE)}
    there.file.write_text(TEMPLATE)
    redis.beats(here, there)
    assert here.file.read_text() == TEMPLATE and here.shards[0].newest.number == 2, "back again is a change as well"


def test_a_shard_that_has_not_heard_of_a_text_takes_it_from_the_file(tmp_path: Path) -> None:
    """Who edits the file meanwhile finds what was written last, not an older text that another shard put back."""
    here, redis = Machine(tmp_path), Redis()
    redis.beats(here)
    one, other = here.shards
    here.file.write_text(PAUSE)
    assert one.changed_text() == PAUSE
    assert other.changed_text() == PAUSE, "though Redis does not know it yet"
    late = CrawlControl(here.path, FIRST)
    assert late.changed_text() == here.file.read_text() == PAUSE
    here.file.write_text("pause: false\n")
    assert other.changed_text() == one.changed_text() == "pause: false\n"
    assert one.newest == other.newest == Edition(2, "pause: false\n")


def test_a_change_of_the_live_page_is_not_overwritten_by_a_shard_that_looks(tmp_path: Path) -> None:
    here = Machine(tmp_path)
    one, other = here.shards
    with one.alone():
        other.merge(Edition(1, PAUSE))
        assert other.changed_text() == PAUSE and not here.file.exists(), "the file is left alone"
    other.changed_text()
    assert here.file.read_text() == PAUSE, "until the change is done"


def test_a_text_written_before_the_start_or_while_nobody_ran_holds(tmp_path: Path) -> None:
    here, there, redis = Machine(tmp_path / "a", 1), Machine(tmp_path / "b", 1), Redis()
    here.file.write_text(PAUSE)
    redis.beats(here, there)
    assert there.file.read_text() == PAUSE
    for number in range(3):
        here.file.write_text(f"max_pages: {number}\n")
        redis.beats(here)  # the other machine is away
    there.file.write_text("pause: false\n")
    there.start(0)
    assert there.shards[0].changed_text() == "pause: false\n"
    redis.beats(there, here)
    assert here.file.read_text() == "pause: false\n", "it came last, though its machine knew of fewer"


def test_what_cannot_be_read_is_told_where_it_was_written_and_changes_nothing(tmp_path: Path) -> None:
    here, there, redis = Machine(tmp_path / "a", 1), Machine(tmp_path / "b", 1), Redis()
    redis.beats(here, there)
    here.file.write_text("pause: perhaps\n")
    with pytest.raises(BadInput, match="pause is 'perhaps'"):
        here.shards[0].changed_text()
    assert here.shards[0].changed_text() is None, "it is told once"
    there.file.write_text(PAUSE)
    redis.beats(there)
    redis_text = redis.edition
    here.shards[0].merge(redis_text)
    with pytest.raises(BadInput):
        here.shards[0].changed_text()
    assert here.shards[0].changed_text() == PAUSE, "what holds elsewhere holds here too"
    assert here.file.read_text() == "pause: perhaps\n", "nobody's work is overwritten"
    here.file.write_text("max_pages: 5\n")
    redis.beats(here, there)
    assert there.file.read_text() == "max_pages: 5\n"


class Edits(RuleBasedStateMachine):
    """People write; shards beat and start again; Redis loses all."""

    def __init__(self) -> None:
        super().__init__()
        self._patches = pytest.MonkeyPatch()
        self._patches.setattr(crawl_control, "write_whole", Path.write_text)  # which does not wait for the disk
        self._directory = tempfile.TemporaryDirectory()
        self.machines = [Machine(Path(self._directory.name, name)) for name in "abc"]
        self.redis = Redis()
        self.written = 0

    def teardown(self) -> None:
        self._directory.cleanup()
        self._patches.undo()

    @rule(machine=st.integers(0, 2))
    def write(self, machine: int) -> None:
        self.written += 1
        self.machines[machine].file.write_text(f"max_pages: {self.written}\n")

    @rule(machine=st.integers(0, 2), shard=st.integers(0, 1))
    def beat(self, machine: int, shard: int) -> None:
        self.redis.beat(self.machines[machine].shards[shard])

    @rule(machine=st.integers(0, 2), shard=st.integers(0, 1))
    def look(self, machine: int, shard: int) -> None:
        self.machines[machine].shards[shard].changed_text()

    @rule(machine=st.integers(0, 2), shard=st.integers(0, 1))
    def start(self, machine: int, shard: int) -> None:
        self.machines[machine].start(shard)

    @rule()
    def lose_redis(self) -> None:
        self.redis.edition = None

    @rule(machine=st.integers(0, 2))
    def a_last_change_holds(self, machine: int) -> None:
        self.redis.beats(*self.machines)
        self.write(machine)
        self.redis.beats(*self.machines)
        assert self.redis.edition is not None and self.redis.edition.text == f"max_pages: {self.written}\n"

    @invariant()
    def in_the_end_all_agree(self) -> None:
        if self.written % 3 == 0:
            self.redis.beats(*self.machines)
            assert len({shard.newest for machine in self.machines for shard in machine.shards}) == 1
            assert {machine.file.read_text() for machine in self.machines} == {self.machines[0].shards[0].newest.text}


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=examples(30), stateful_step_count=12, deadline=None)
