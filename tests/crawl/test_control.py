"""``control.yaml``, written while the crawl runs; what it changes is seen in the server's access log."""

from __future__ import annotations

import resource
import signal
import time

import pytest
from conftest import Crawl, html, page, serving
from test_control_file import no_files

from spiderling.jobdir.status import warnings_of


def web() -> dict:
    return {
        host: {f"/{n}": page(f"{host}{n}", f"/{n + 1}", f"/{2 * n}", f"/{3 * n}") for n in range(400)}
        for host in ("calm.test", "loud.test", "late.test")
    }


class Session:
    """A running crawl with its control file."""

    def __init__(self, crawl: Crawl, server) -> None:
        self.crawl, self.server = crawl, server
        self.running = crawl.start("http://calm.test/1 http://loud.test/1")

    def write(self, text: str) -> None:
        """Replace the file and wait until the crawl has taken it up or refused it."""
        before = len(self._noted())
        (self.crawl.directory / "control.yaml").write_text(text)
        self.running.until(lambda: len(self._noted()) > before)
        time.sleep(0.2)  # requests that were on their way then have arrived

    def asked(self, host: str, since: float = 0.0) -> list[float]:
        return [entry.time_s for entry in self.server.log_entries if entry.host == host and entry.time_s >= since]

    def _noted(self) -> list[str]:
        return [line for line in self.running.output().splitlines() if "control.yaml" in line]


def test_every_key_takes_effect_while_the_crawl_runs(server, tmp_path):
    session = Session(Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05), server)
    session.running.until(lambda: len(session.asked("loud.test")) > 3)

    session.write("pause: true\n")
    paused = time.monotonic()
    session.running.until(lambda: time.monotonic() > paused + 1)
    assert not [entry for entry in server.log_entries if entry.time_s > paused]
    session.write("pause: perhaps\n")
    (session.crawl.directory / "control.yaml").unlink()
    session.running.until(lambda: len(session.asked("loud.test", paused)) > 3)

    session.write('block: ["www.LOUD.test"]\n')
    blocked = time.monotonic()
    session.write('block: ["lou*.test"]\nhost_interval_s: nonsense\nip_interval_s: 0.5\n')  # left aside as a whole
    assert session.asked("calm.test", blocked) and not session.asked("loud.test", blocked)

    session.write('seeds: ["http://late.test/1"]\nreopen: ["loud.test"]\nhost_interval_s: 0.4\n')
    changed = time.monotonic()
    session.running.until(lambda: len(session.asked("loud.test", changed)) > 2)
    session.running.until(lambda: session.asked("late.test", changed))
    session.running.until(lambda: len(session.asked("calm.test", changed)) > 4)
    times = session.asked("calm.test", changed)
    assert times[-1] - times[0] >= 0.4 * (len(times) - 1) - 0.12

    session.write("max_pages: 10\n")
    result = session.running.wait()
    assert result.code == 0
    assert result.lines("was paused (budget); a larger budget lets it go on.")
    assert len(result.lines("] ERROR: ")) == 2
    assert result.lines("] ERROR: ", "pause is 'perhaps'; it must be true or false")
    assert result.lines("] ERROR: ", "control.yaml is left aside", "host_interval_s is 'nonsense'; it must be a number")
    assert "Traceback" not in result.output

    state = session.crawl.state()
    state.check()
    assert state.hosts["loud.test"]["exempt"] == 1
    assert state.hosts["late.test"]["distance"] == 0
    events = "\n".join(state.events)
    for change in (
        "control.yaml: block: [] -> ['www.LOUD.test']", "blocked loud.test", "reopened loud.test with ",
        "control.yaml: seeds: [] -> ['http://late.test/1']", "control.yaml: host_interval_s: None -> 0.4",
        "control.yaml: max_pages: None -> 10", "control.yaml: pause: False -> True",
    ):  # fmt: skip
        assert change in events


def test_what_is_blocked_stays_so_at_a_restart_though_it_was_reopened_before(server, tmp_path):
    """The file is applied anew at each start; it warns of nothing that it has done before."""
    crawl = Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05)
    seeds = "http://calm.test/1 http://loud.test/1"
    (tmp_path / "job").mkdir()
    file = tmp_path / "job/control.yaml"
    file.write_text('seeds: ["http://late.test/1"]\nmax_pages: 6\n')
    assert crawl.run(seeds).code == 0
    asked = [entry.host for entry in server.log_entries]
    assert {*asked} == {"calm.test", "loud.test", "late.test"}
    begin = file.read_text().replace("6", "12") + 'reopen: ["calm.test", "loud.test"]\n'
    file.write_text(begin + 'block: ["loud.test"]\n')
    result = crawl.run(seeds)
    assert [entry.host for entry in server.log_entries].count("loud.test") == asked.count("loud.test")
    [warning] = result.lines("WARNING")
    assert "reopen: 'loud.test' stands under block: too; take it out there first" in warning
    assert "control.yaml: the seed 'http://late.test/1' is left out: already discovered" in result.output
    file.write_text(begin.replace("12", "24"))
    assert not crawl.run(seeds).lines("WARNING")
    assert [entry.host for entry in server.log_entries].count("loud.test") > asked.count("loud.test")


@pytest.mark.slow
def test_a_strategy_that_leaves_nothing_out_retires_no_host_unless_told_to(tmp_path):
    """The profile of the options was put in force over the strategy's word when control.yaml was first read."""
    sites = {"poor.test": {f"/{n}": html(f'<a href="/{n + 1}">on</a>') for n in range(30)}}
    (tmp_path / "told").mkdir()
    (tmp_path / "told/control.yaml").write_text("yield_profile: normal\n")
    with serving(sites) as server:
        for name, strategy, retires in (("bfs", "bfs", False), ("yield", "yield", True), ("told", "bfs", True)):
            given = {"STRATEGY": strategy, "HOST_INTERVAL_S": 0.01, "YIELD_PROFILE": "normal", "TRAPS": "copies=0"}
            crawl = Crawl(tmp_path / name, server, CONSTANTS={"frontier.host_closing.MIN_BYTES": 0}, **given)
            result = crawl.run("http://poor.test/0")
            assert bool(result.lines("Retired poor.test")) is retires, name
            assert result.lines(f"strategy {strategy}; "), "the start line says which"
            if name == "bfs":
                assert result.lines("no host is retired for its yield")


@pytest.mark.slow
def test_an_hour_that_was_taken_back_holds_neither_the_crawl_nor_its_end_up(server, tmp_path):
    """Hosts waited out the old hour, and SIGTERM, which promises ten seconds, waited for a request that waited with
    them."""
    session = Session(Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05, IP_INTERVAL_S=0.01), server)
    begun = time.monotonic()
    session.running.until(lambda: len(session.asked("loud.test", begun)) > 3)
    for key in ("host_interval_s", "ip_interval_s"):
        session.write(f"{key}: 3600\n")
        session.write("# as before\n")
        back = time.monotonic()
        session.running.until(lambda since=back: len(session.asked("loud.test", since)) > 3)
    session.write("max_pages: 1" + "0" * 400)
    session.write("host_interval_s: 3600\nip_interval_s: 3600\n")
    session.running.process.send_signal(signal.SIGTERM)
    result = session.running.wait()
    assert result.code == 0 and "Traceback" not in result.output
    assert result.lines("] ERROR: ", "max_pages is 1000", "it must be a whole number, at least 0")


def test_a_change_that_could_not_be_read_at_first_takes_effect(server, tmp_path):
    """It was left aside until somebody changed the file again."""
    session = Session(Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05), server)
    session.running.until(lambda: any((tmp_path / "job/corpus").glob("*.zst")))  # a segment is open by then
    pid = session.running.process.pid
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, most))
    session.write("pause: true\n")
    assert "is left aside until it is mended: Too many open files" in session.running.output()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    session.running.until(lambda: "The crawl is paused by control.yaml" in session.running.output())
    session.running.process.send_signal(signal.SIGTERM)
    assert session.running.wait().code == 0


@pytest.mark.parametrize("kinds", [("a pipe", "a pipe"), ("a directory", "a socket")])
def test_no_file_in_the_place_of_one_is_told_and_holds_nothing_up(kinds, server, tmp_path):
    """A crawl stood still until somebody wrote to the pipe."""
    job = tmp_path / "job"
    job.mkdir()
    for name, kind in zip(("control.yaml", "crawl.log"), kinds, strict=True):
        (elsewhere := tmp_path / name).mkdir()
        no_files(elsewhere)[kind].rename(job / name)
    result = Crawl(job, server, HOST_INTERVAL_S=0.01, MAX_PAGES=5).run("http://calm.test/1")
    assert result.code == 0 and "Traceback" not in result.output
    assert len(result.lines("] ERROR: ", "control.yaml is left aside until it is mended: ")) == 1
    assert len(result.lines("] WARNING: ", "crawl.log cannot be written (")) == 1
    assert warnings_of(job / "crawl.log") == [], "who looks at the crawl is not held up either"
