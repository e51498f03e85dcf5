"""The command lines of README.md and docs/: what stands there, and for each how it is run by a test, or why it is not.

A line in a block without a language or of a shell, an indented line and a code span count as command lines, if they
begin with a program of ``PROGRAMS``. A span that only names a command (``scrapy export``) is no line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")))
PROGRAMS = (
    r"scrapy|spiderling|scrapyd-deploy|make|python3?|pip|docker|systemctl|journalctl|py-spy|zstd|jq|sqlite3|curl|wget|"
    r"grep|zcat|gunzip|head|shuf|split|sbatch|rm|cp|mkdir|kill|nohup|tmux|screen|sudo|watch|\.ci/\S+"
)
COMMAND_LINE = re.compile(rf"(?:\. \S|(?:{PROGRAMS})(?: [^\s|=]|$)).*")
NAME = re.compile(r"(?:scrapy|spiderling) [a-z]+(?: [a-z]+| --[a-z]+)?|zstd -dc|sqlite3 -readonly|\w+")
"""A span that names a command or a program."""
WHOLE = {"scrapy languages", "scrapy options", "scrapy reasons"}
"""These look like names, but are meant to be typed."""
SHELL_BLOCKS = ("```\n", "```sh\n", "```bash\n", "```console\n", "    ")
"""How a block begins that may hold command lines."""


class Run(NamedTuple):
    """How a line is run."""

    more: str = ""
    """Arguments that make it end soon, or tell it what the reader of the page has."""
    says: str = ""
    """Words of its output."""
    instead: tuple[str, str] = ("", "")
    """What stands for a word that the reader replaces, besides ``STAND_INS``."""
    slow: bool = False


class Elsewhere(NamedTuple):
    """A line that another test runs."""

    test: str
    """Its file."""
    words: str
    """What stands in that file where it is run."""


class NotRun(NamedTuple):
    """A line that no test runs."""

    because: str


STAND_INS = {
    "you@example.org": "test@corpus.internal",
    "me@example.org": "test@corpus.internal",
    "JOBDIR...": "crawls/cs crawls/sk",
    "JOBDIR": "crawls/cs",
    "URL_OR_FILE": "page.html",
    "URL": "http://www.example.cz/",
    "SITE": "http://www.example.cz/",
    "FILE": "page.html",
    "PAGES.jsonl": "pages.jsonl",
    "LANG": "rm",
    "CODE": "cs",
    "OUT": "out.jsonl",
    "DIR": "models-made",
}
"""What stands for the words that a reader replaces; the web of the tests has no TLS."""
FINISHED = "is finished."
BEGUN = Run(more="-a seeds=http://www.example.cz/", says=FINISHED)
BEGUN_AGAIN = BEGUN._replace(slow=True)
ARCHIVED = Run(says="all archives are read", slow=True)
SEEDS = Run()
JUDGED = Run(says="kept")
EXPORTED = Run(says=" documents in ")
PARTS = ("crawls/cc/*/", "crawls/cs crawls/sk")
"""A shell puts in the directories."""
SAMPLED = Run(instead=("028f", "ffff"), says=" documents in ")
"""One in a hundred of so few documents is mostly none."""
DROPPED = Run(says=" dropped")
TRAINED = Run(says="Model of ")
TRAINED_AGAIN = TRAINED._replace(slow=True)
SIMULATED = Run(more="--pages 300 --jobs 1", says="| web | strategy |")
REPLAYED = Run(more="--jobs 1", says="| bfs |")
DEMO = Elsewhere("tests/test_demo.py", "examples.demo")
DEMO_ARGUMENTS = Elsewhere("tests/cli/test_documented_commands.py", "test_the_demo_takes_arguments")
COMMON_CRAWL = NotRun("it reads from Common Crawl")
WATCHED = Elsewhere("tests/live/watched.py", 'Authorization=f"Bearer {self.token}"')
IMPORTED = Elsewhere("tests/test_docs.py", "test_what_makes_the_pages_can_be_run_from_the_checkout")
WHEEL = Elsewhere("tests/test_distribution.py", "test_the_wheel_crawls_and_exports_where_there_is_no_checkout")
SHARDS = Elsewhere("tests/cluster/test_crawl_of_shards.py", "crawl.start(SEED) for _ in range(2)")
ALL_SHARDS = Elsewhere("tests/cluster/test_all_shards.py", 'crawl.start(SHARDS="auto")')
SHARD_JOBS = Elsewhere("tests/test_scrapyd.py", 'ask("schedule.json", {**job, "jobid": jobid})')
READ_BACK = Elsewhere("tests/cli/test_export_formats.py", "test_the_example_reads_what_was_written")
REVISITS = Elsewhere("tests/crawl/test_recrawl.py", '"RECRAWL": "on"')
SHARDS_KEY = Elsewhere("tests/cluster/test_joining.py", "key.chmod(mode)")
ACTIVATED = NotRun("it alters the shell; the tests run the programs of the environment that they are in")
FRAGMENT = NotRun("a part of a command, or a pattern of one")
INSTALLS = NotRun("it installs packages from the network")
DOCKER = NotRun("it needs Docker, and builds an image from the network")
MEASURES = NotRun("it runs for many minutes, or needs data that are not in the checkout")

COMMANDS: dict[str, Run | Elsewhere | NotRun] = {
    # recrawl
    "scrapy crawl spiderling -a lang=cs -a recrawl=on": REVISITS,
    "scrapy crawl spiderling -a lang=cs -a recrawl=30d": REVISITS,
    # shards
    "scrapy crawl spiderling -a lang=cs -s SPIDERLING_SHARDS=auto": ALL_SHARDS,
    "curl http://localhost:6800/schedule.json -d project=spiderling -d spider=spiderling -d lang=cs -d jobid=cs "
    "-d setting=SPIDERLING_SHARDS=auto": SHARD_JOBS,
    "curl http://localhost:6800/schedule.json -d project=spiderling -d spider=spiderling -d lang=cs "
    "-d setting=SPIDERLING_CLUSTER=redis://host/0 -d setting=SPIDERLING_SHARDS=16 "
    "-d setting=SPIDERLING_CLUSTER_KEY_FILE=/etc/cluster.key": SHARD_JOBS,
    "sbatch --array=0-15 examples/clusters/shards.sbatch -a lang=cs -s SPIDERLING_SHARDS=16 "
    "-s JOBDIR=/scratch/crawls/cs -s SPIDERLING_CLUSTER=redis://host/0 -s SPIDERLING_CLUSTER_KEY_FILE=cluster.key "
    "-s SPIDERLING_CONTACT=you@example.org": Elsewhere("tests/cluster/test_all_shards.py", "shards.sbatch"),
    "make cluster-demo": Elsewhere("tests/test_demo.py", '"SPIDERLING_SHARDS=4"'),
    "scrapy crawl spiderling -a lang=cs -s SPIDERLING_CLUSTER=unix:///tmp/crawl.sock -s SPIDERLING_SHARDS=2": SHARDS,
    "scrapy crawl spiderling -a lang=cs -s SPIDERLING_CLUSTER=redis://host/0 -s SPIDERLING_SHARDS=2 "
    "-s SPIDERLING_CLUSTER_KEY_FILE=cluster.key": SHARDS,
    "head -c 32 /dev/urandom > cluster.key; chmod 600 cluster.key": SHARDS_KEY,
    # set up
    "scrapy crawl spiderling -a lang=cs -s SPIDERLING_PAGE=127.0.0.1:8580": BEGUN,
    'curl -H "Authorization: Bearer $(cat crawls/cs/page.token)" http://127.0.0.1:8580/status.json': WATCHED,
    """curl -H "Authorization: Bearer $(cat crawls/cs/page.token)" -H 'X-Spiderling: 1' --json '{"action": "block", """
    """"host": "ads.example.com"}' http://127.0.0.1:8580/control""": WATCHED,
    "make setup": INSTALLS,
    "make setup EXTRAS=": INSTALLS,
    "make setup PYTHON=python3.11": INSTALLS,
    "make setup EXTRAS=all": INSTALLS,
    "make setup PYTHON=/usr/bin/python3": INSTALLS,
    "make native": INSTALLS,
    "pip install ./native": INSTALLS,
    "pip install ./simulator": INSTALLS,
    "make test": NotRun("it runs these tests"),
    "make lint": NotRun("it judges the sources, as CI does"),
    "make models": MEASURES,
    "make demo": DEMO,
    "make demo JOBDIR=crawls/bfs ARGS='-a strategy=bfs -s SPIDERLING_LINKS=on -s SPIDERLING_WARC=on'": DEMO_ARGUMENTS,
    "make demo ARGS='-a words=100000'": DEMO_ARGUMENTS,
    "make demo ARGS='-a words=200000'": DEMO_ARGUMENTS,
    ". .venv/bin/activate": ACTIVATED,
    "python3 -m venv spiderling-venv": WHEEL,
    ". spiderling-venv/bin/activate": ACTIVATED,
    "pip install '/path/to/this/checkout[all]'": WHEEL,
    "pip install '/path/to/spiderling[all]'": WHEEL,
    "pip install -c constraints.txt ...": FRAGMENT,
    "pip install -c constraints.txt -r requirements.txt 'setuptools>=77,<81'": INSTALLS,
    "pip install py-spy": INSTALLS,
    "spiderling COMMAND": FRAGMENT,
    "scrapy COMMAND": FRAGMENT,
    "scrapy settings --get ITEM_PIPELINES": Elsewhere(
        "tests/cli/test_stock_commands.py", 'scrapy("settings", "--get", "ITEM_PIPELINES"'
    ),
    "scrapyd-deploy": Elsewhere("tests/test_scrapyd.py", "scrapyd"),
    ".ci/try-scrapy": INSTALLS,
    ".ci/try-scrapy 2.19.1": INSTALLS,
    "docker build -t spiderling -f examples/operations/Dockerfile .": DOCKER,
    "docker run --rm --init -v crawls:/data/crawls spiderling crawl -a lang=cs -a words=1M "
    "-s SPIDERLING_CONTACT=you@example.org": DOCKER,
    'docker run --rm -v crawls:/data/crawls -v "$PWD:/out" --user "$(id -u)" spiderling export crawls/cs '
    "-o /out/cs.jsonl": DOCKER,
    "docker stop --time 60": DOCKER,
    "docker compose -f examples/operations/compose.yaml up": DOCKER,
    # crawl
    "scrapy crawl spiderling -a lang=cs": BEGUN_AGAIN,
    "scrapy crawl spiderling -a lang=cs -s SPIDERLING_CONTACT=you@example.org": BEGUN_AGAIN,
    "scrapy crawl spiderling -a lang=cs -a words=1M -s SPIDERLING_CONTACT=you@example.org": BEGUN,
    "scrapy crawl spiderling -a lang=cs -a seeds=good.txt -s SPIDERLING_CONTACT=me@example.org": (
        Run(says=FINISHED, slow=True)
    ),
    "scrapy crawl spiderling -a lang=cs -o corpus.jsonl": BEGUN,
    "scrapy crawl spiderling -a lang=hsb -a seeds=FILE -s SPIDERLING_MODELS=my-models": Run(
        instead=("FILE", "seeds.txt"), says=FINISHED, slow=True
    ),
    "scrapy crawl spiderling -a lang=rm -a seeds=good.txt -a recognise=oc -s SPIDERLING_YIELD_PROFILE=permissive "
    "-s SPIDERLING_MODELS=my-models -s SPIDERLING_CONTACT=you@example.org": Run(says=FINISHED),
    "spiderling crawl -a lang=cs": BEGUN_AGAIN,
    "spiderling crawl -a lang=cs -a words=1M -s SPIDERLING_CONTACT=you@example.org": BEGUN,
    "scrapy crawl archive -a lang=cs -a warc='*.warc.gz'": ARCHIVED,
    "scrapy crawl archive -a lang=cs -a warc='CC-MAIN-*.warc.gz'": ARCHIVED,
    "scrapy crawl archive -a lang=cs,en -a warc=crawls/bfs/warc": ARCHIVED,
    "scrapy crawl archive -a lang=cs -a warc=crawls/cs/warc -s SPIDERLING_BOILERPLATE=justext": ARCHIVED,
    "curl -O https://data.commoncrawl.org/crawl-data/CC-MAIN-2024-51/warc.paths.gz": COMMON_CRAWL,
    "gunzip warc.paths.gz": COMMON_CRAWL,
    "shuf -n 3 warc.paths | sed 's|^|https://data.commoncrawl.org/|' > three.paths": Run(),
    "scrapy crawl archive -a lang=cs -a warc=three.paths -a words=1M -s SPIDERLING_CONTACT=you@example.org": (
        COMMON_CRAWL
    ),
    "zcat warc.paths.gz | shuf -n 1000 | sed 's|^|https://data.commoncrawl.org/|' > thousand.paths": Run(),
    "mkdir -p crawls/cc": Run(),
    "split --number=r/100 --numeric-suffixes --suffix-length=3 --additional-suffix=.paths thousand.paths crawls/cc/": (
        Run()
    ),
    "sbatch --array=0-99%20 --requeue --signal=B:TERM@120 --cpus-per-task=2 --mem=6G --time=12:00:00 --wrap "
    "'part=$(printf crawls/cc/%03d $SLURM_ARRAY_TASK_ID); exec scrapy crawl archive -a lang=cs -a warc=$part.paths "
    "-s JOBDIR=$part -s SPIDERLING_WORKERS=2 -s SPIDERLING_DEDUP_BYTES=1500M "
    "-s SPIDERLING_CONTACT=you@example.org'": NotRun("it needs Slurm"),
    "pip install warcio": INSTALLS,
    "scrapy seeds sitemap SITE -a lang=cs -o seeds.txt": SEEDS,
    "scrapy seeds sitemap www.example.cz example.sk -a lang=cs -o seeds.txt -s SPIDERLING_CONTACT=me@example.org": (
        SEEDS._replace(instead=("www.example.cz example.sk", "http://www.example.cz/ http://example.sk/"))
    ),
    "scrapy seeds check seeds.txt -a lang=cs -o good.txt -s SPIDERLING_CONTACT=me@example.org": SEEDS,
    "scrapy seeds check seeds.txt -a lang=rm -o good.txt -s SPIDERLING_MODELS=my-models "
    "-s SPIDERLING_CONTACT=you@example.org": SEEDS._replace(slow=True),
    "scrapy page page.html -a lang=rm -s SPIDERLING_MODELS=my-models": JUDGED,
    "scrapy page URL -a lang=cs": JUDGED,
    "scrapy page URL_OR_FILE -a lang=cs": JUDGED,
    "scrapy page FILE -a lang=cs": JUDGED,
    "rm -r crawls/demo": Run(),
    # look into a crawl
    "scrapy inspect JOBDIR": Run(says="How URLs ended"),
    "scrapy inspect crawls/demo": Run(says="How URLs ended"),
    "scrapy inspect crawls/rm": Run(says="How URLs ended"),
    "scrapy inspect crawls/demo host handbook.cs-cz.test": Run(
        instead=("handbook.cs-cz.test", "example.cz"), says="example.cz"
    ),
    "scrapy inspect crawls/demo url http://portal.test/index.html": Run(
        instead=("http://portal.test/index.html", "http://www.example.cz/"), says="kept"
    ),
    "scrapy inspect crawls/cs --check": Run(says="The crawl is whole."),
    "grep bottleneck crawls/cs/crawl.log | tail -1": Run(),
    "grep -E 'WARNING|ERROR' crawls/cs/crawl.log": Run(more="|| true"),
    "scrapy report crawls/cs": Run(says="report.html", slow=True),
    "scrapy inspect JOBDIR gone": Run(says=""),
    "scrapy inspect JOBDIR url URL": Run(says="kept"),
    "scrapy inspect JOBDIR --json": Run(says='"version":1'),
    "scrapy inspect JOBDIR --check": Run(says="The crawl is whole."),
    "scrapy inspect JOBDIR --rebuild": Elsewhere("tests/test_rebuild.py", '"--rebuild"'),
    "scrapy report JOBDIR": Run(says="report.html"),
    "sqlite3 -readonly crawls/demo/state/frontier.sqlite 'SELECT * FROM hosts'": Run(says="example.cz"),
    "zstd -dc crawls/demo/corpus/*.prevert.zst": Run(says='url="http://www.example.cz/"'),
    "zstd -dc crawls/demo/corpus/*.prevert.zst | head -20": Run(says='url="http://www.example.cz/"'),
    "zstd -dc *.links.zst | jq -r .url": Run(instead=("*", "crawls/cs/links/*"), says="http://www.example.cz/"),
    # use what came out
    "scrapy export JOBDIR -o cs.jsonl": EXPORTED,
    "scrapy export JOBDIR -o OUT --salvage": EXPORTED,
    "scrapy export crawls/demo -o cs.txt --where \"lang = 'cs'\"": EXPORTED,
    "scrapy export crawls/demo -o cs.vert --where \"lang = 'cs'\"": EXPORTED,
    "scrapy export crawls/rm -o rm-web.txt": EXPORTED,
    "grep -oE '.{30}slov.{30}' cs.txt | head -3": Run(),
    "scrapy export crawls/demo -o cs.jsonl --where \"lang = 'cs'\"": EXPORTED,
    "scrapy export crawls/cs -o cs.parquet --split lang --shard-bytes 2G": EXPORTED,
    "scrapy export crawls/cs -o good.jsonl.zst --where 'badness <= 10 AND distance <= 3'": EXPORTED,
    "scrapy export crawls/cs -o june.parquet "
    """--where "crawl_date >= '2026-06' AND crawl_date < '2026-07'" --split tld""": EXPORTED._replace(
        instead=("2026-07", "2999")
    ),
    "scrapy export crawls/cs -o cs-monitor/2026-11-28.parquet --after cs-monitor/2026-11-27.parquet.json": Elsewhere(
        "tests/cli/test_incremental_export.py", '"--after"'
    ),
    "scrapy inspect crawls/cs gone > gone.tsv": Run(),
    "scrapy export crawls/cs -o cs-monitor-2.parquet --drop-url gone.txt": EXPORTED,
    "scrapy export crawls/cs crawls/sk -o one-percent.vert.gz --where \"id < '028f'\"": SAMPLED,
    """scrapy export crawls/cs -o cs-dataset/ --where "licence LIKE '%creativecommons.org/%'\"""": EXPORTED,
    """scrapy export crawls/cs -o cs-open/ --where "licence LIKE '%creativecommons.org/licenses/by/%' """
    "OR licence LIKE '%creativecommons.org/licenses/by-sa/%' "
    """OR licence LIKE '%creativecommons.org/publicdomain/%'\"""": EXPORTED,
    "scrapy export crawls/cs -o cs.txt": EXPORTED,
    "scrapy export crawls/cs -o cs.vert.zst": EXPORTED,
    "scrapy export crawls/cs -o cs/": EXPORTED,
    "scrapy export crawls/cs -o cs.parquet": EXPORTED,
    "scrapy export crawls/cs -o cs-2/ --drop-host hosts.txt --drop-url urls.txt": DROPPED,
    "scrapy export crawls/cs -o cs.prevert.zst --drop-host hosts.txt --drop-url urls.txt": DROPPED,
    "scrapy dedup JOBDIR... -o cs.prevert.zst": Run(),
    "scrapy dedup crawls/demo crawls/bfs -o both.prevert.zst": Run(),
    "scrapy dedup crawls/cc/*/ -o cs.prevert.zst": Run(instead=PARTS),
    "scrapy export crawls/cc/*/ -o cs.parquet": EXPORTED._replace(instead=PARTS),
    "scrapy dedup crawls/cs-2025 crawls/cs-2026 old/cs.prevert.gz -o cs.prevert.zst": Run(),
    "python examples/read_corpus.py cs/": READ_BACK,
    "python examples/read_corpus.py cs/ cs.jsonl.gz cs.tei.xml": READ_BACK,
    # languages and models
    "scrapy about -s SPIDERLING_CONTACT=you@example.org > crawler.html": Run(says="How to keep it out"),
    "scrapy about -a lang=cs --who 'The corpus group of Example University' --address 192.0.2.7 "
    "-s SPIDERLING_CONTACT=https://corpus.example.org/crawler.html > crawler.html": Run(says="text in Czech"),
    "scrapy languages": Run(says="Czech"),
    "scrapy options": Run(says="SPIDERLING_CONTACT"),
    "scrapy reasons": Run(says="wrong-language"),
    "scrapy identify FILE": Run(says="Czech"),
    "scrapy identify page.html -s SPIDERLING_MODELS=my-models": Run(says="Czech"),
    "scrapy train LANG text.txt --out my-models": TRAINED,
    "scrapy train rm rm.txt --name Romansh --neighbours it,fr,de --out my-models": TRAINED_AGAIN,
    "scrapy train rm rm.txt rm-web.txt --force --out my-models": TRAINED,
    "scrapy train hsb wikipedia.txt news.txt --name 'Upper Sorbian' --neighbours cs,pl,de --out my-models": TRAINED,
    "python -m models.block_model PAGES.jsonl --out my.json": Run(says="12 pages of 12 hosts"),
    # strategies
    "python -m simulator": SIMULATED,
    "python -m simulator bfs spiderling": SIMULATED,
    "python -m simulator lswc:s=3,t=5 simulator.rivals.Hard --seeds 5 --html lswc.html": SIMULATED._replace(slow=True),
    "python -m simulator yield -s SPIDERLING_YIELD_PROFILE=paper --web pt --pages 1e6 --rate 100": SIMULATED,
    "python -m simulator bfs spiderling --web crawls/bfs --html bfs.html": REPLAYED,
    "python -m simulator bfs spiderling --web crawls/cs": REPLAYED,
    "python -m simulator bfs perfect --web graph/:cs --web graph/:pl": REPLAYED,
    "python -m simulator.recrawl": MEASURES,
    "python -m simulator.recrawl gov": Run(more="--budget 0.01", says="| gov | spiderling |"),
    "python -m simulator.recrawl blogs forum --seeds 3 --budget .02": Run(says="| forum | spiderling |", slow=True),
    "python -m simulator mine.Yours bfs --web thai": NotRun("the strategy is still to be written by the reader"),
    # extend
    "python -m tests.test_docs": IMPORTED,
    "python -m docs.architecture": IMPORTED,
    "python -m docs.picture": Elsewhere("tests/text/test_guide.py", "test_the_picture_is_up_to_date"),
    "py-spy record --gil -d 60 -o crawl.svg --pid PID": NotRun("it needs a crawl of a minute and a package of its own"),
    "python -m benchmarks.memory new": MEASURES,
    "python -m benchmarks.trace --list": MEASURES,
    "python -m benchmarks.text --data DIR": MEASURES,
    "python -m benchmarks.encoding --data DIR": MEASURES,
}
"""Each command line of the pages."""


def command_lines(text: str) -> list[str]:
    """Those of a page, in its order."""
    found = []
    for block, code in re.findall(r"^(```\w*\n.*?^```$|    [^\n]*)|`([^`\n]+)`", text, re.MULTILINE | re.DOTALL):
        if not block:
            found += [] if NAME.fullmatch(code) and code not in WHOLE else [code]
        elif block.startswith(SHELL_BLOCKS):
            found += block.splitlines()
    lines = [re.sub(r"\s+# .*", "", line).strip() for line in found]
    return [line for line in lines if COMMAND_LINE.fullmatch(line)]
