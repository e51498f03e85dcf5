"""The command lines of README.md and docs/: how a test runs each of them, or why none does.

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
WHOLE = {"scrapy languages"}  # it looks like a name, but is meant to be typed
SHELL_BLOCKS = ("```\n", "```sh\n", "```bash\n", "```console\n", "    ")
"""How a block begins that may hold command lines."""


class Run(NamedTuple):
    """How a line is run."""

    more: str = ""  # arguments that make it end soon, or tell it what the reader of the page has
    says: str = ""  # words of its output
    slow: bool = False


class Elsewhere(NamedTuple):
    """A line that another test runs."""

    test: str  # its file, in tests/
    words: str  # what stands in that file where it is run


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
    "seeds=FILE": "seeds=seeds.txt",
    "DUMP": "cswiki-latest-externallinks.sql.gz",
    "FILE": "page.html",
    "PAGES.jsonl": "pages.jsonl",
    "LANG": "rm",
    "CODE": "cs",
    "OUT": "out.jsonl",
    "DIR": "models-made",
    "handbook.cs-cz.test": "example.cz",
    "http://portal.test/index.html": "http://www.example.cz/",
    "crawls/cc/*/": "crawls/cs crawls/sk",  # a shell puts in the directories
    "*.links.zst": "crawls/cs/links/*.links.zst",
    "028f": "ffff",  # one in a hundred of so few documents is mostly none
    "2026-07": "2999",
}
"""What stands for the words that a reader replaces; the web of the tests has no TLS."""
DEMO_ARGUMENTS = Elsewhere("cli/test_documented_commands.py", "test_the_demo_takes_arguments")
RULES: dict[str, Run | Elsewhere | NotRun] = {
    # set up
    r"(scrapy|spiderling) COMMAND|pip install -c constraints\.txt \.\.\.": NotRun("it is a part of a command"),
    r"python3 -m venv .*|pip install '/path/to/.*": (
        Elsewhere("test_distribution.py", "test_the_wheel_crawls_and_exports_where_there_is_no_checkout")
    ),
    r"\. .*/activate": NotRun("it alters the shell; the tests run the programs of the environment that they are in"),
    r"make (setup|native).*|pip install .*|\.ci/try-scrapy.*": NotRun("it installs packages from the network"),
    r"make test": NotRun("it runs these tests"),
    r"spiderling (doctor|completion) .*": Elsewhere("cli/test_shell.py", "completion.Command().work([shell]"),
    r"make (lint|docs)": NotRun("it judges the sources and the pages, as CI does"),
    r"make release": NotRun("it builds for many minutes, with packages from the network"),
    r"make models|python -m benchmarks\..*|python -m simulator\.recrawl": (
        NotRun("it runs for many minutes, or needs data that are not in the checkout")
    ),
    r"make demo": Elsewhere("test_demo.py", "examples.demo"),
    r"make demo .*": DEMO_ARGUMENTS,
    r"make cluster-demo": Elsewhere("test_demo.py", '"SPIDERLING_SHARDS=4"'),
    r"docker .*": NotRun("it needs Docker, and builds an image from the network"),
    r"scrapyd-deploy": Elsewhere("test_scrapyd.py", "scrapyd"),
    r"py-spy .*": NotRun("it needs a crawl of a minute and a package of its own"),
    # shards
    r"curl http://localhost:6800/schedule\.json .*": (
        Elsewhere("test_scrapyd.py", 'ask("schedule.json", {**job, "jobid": jobid})')
    ),
    r"sbatch .*/shards\.sbatch .*": Elsewhere("cluster/test_all_shards.py", "shards.sbatch"),
    r"sbatch .*": NotRun("it needs Slurm"),
    r"scrapy takedown .*": Elsewhere("crawl/test_takedown.py", 'scrapy("takedown", str(directory), "--list"'),
    r"scrapy export crawls/cs cs-2025\.parquet .*": (
        Elsewhere("crawl/test_takedown.py", 'scrapy("export", str(directory), str(old)')
    ),
    r"scrapy takeover .*": Elsewhere("cluster/test_takeover.py", "scrapy(*takeover)"),
    r"scrapy reshard .*": Elsewhere("cluster/test_resharding.py", 'scrapy("reshard", str(directory), "--shards", "2"'),
    r"scrapy crawl .*_SHARDS=auto": Elsewhere("cluster/test_all_shards.py", 'crawl.start(SHARDS="auto")'),
    r"scrapy crawl .*_CLUSTER=.*": (
        Elsewhere("cluster/test_crawl_of_shards.py", "crawl.start(SEED) for _ in range(2)")
    ),
    r"head -c 32 /dev/urandom .*": Elsewhere("cluster/test_joining.py", "key.chmod(mode)"),
    # crawl
    r"scrapy crawl .* -a recrawl=.*": Elsewhere("crawl/test_recrawl.py", '"RECRAWL": "on"'),
    r"(curl -O|gunzip) .*|scrapy crawl archive .*=three\.paths .*": NotRun("it reads from Common Crawl"),
    r"scrapy crawl archive .*": Run(says="all archives are read"),
    r"scrapy crawl .*-a seeds=.*": Run(says="is finished."),
    r"scrapy crawl .*": Run("-a seeds=http://www.example.cz/", "is finished."),
    r"spiderling crawl .*": Run("-a seeds=http://www.example.cz/", "is finished.", slow=True),
    r"curl -H .*": Elsewhere("live/watched.py", 'Authorization=f"Bearer {self.token}"'),
    r"scrapy seeds .*": Run(),
    r"scrapy page .*": Run(says="kept"),
    # look into a crawl
    r"scrapy inspect \S+ --rebuild": Elsewhere("test_surplus.py", '"--rebuild"'),
    r"scrapy inspect \S+ --coverage .*": Elsewhere("test_coverage.py", '"--coverage"'),
    r"scrapy inspect \S+ --check": Run(says="The crawl is whole."),
    r"scrapy inspect \S+ --json": Run(says='"version":1'),
    r"scrapy inspect \S+ gone.*": Run(),
    r"scrapy inspect \S+ host .*": Run(says="example.cz"),
    r"scrapy inspect \S+ url .*": Run(says="kept"),
    r"scrapy inspect \S+": Run(says="How URLs ended"),
    r"scrapy report .*": Run(says="report.html", slow=True),
    r"grep -E 'WARNING.*": Run("|| true"),
    r"(grep|shuf|mkdir|split|zcat|rm) .*": Run(),
    r"sqlite3 .*": Run(says="example.cz"),
    r"zstd .*": Run(says="http://www.example.cz/"),
    # use what came out
    r"scrapy export .*2026-.*": Elsewhere("cli/test_export_formats.py", "crawl_date>='2026-09'"),
    r"python examples/clusters/one_card\.py .*": Elsewhere("cli/test_corpus_card.py", "examples/clusters/one_card.py"),
    r"scrapy export .*--drop-host .*": Run(says=" dropped"),
    r"scrapy export .*--summary eu .*": Run(says="summary.html"),
    r"scrapy export .*": Run(says=" documents in "),
    r"scrapy verify cs(/|\.jsonl .*)": Elsewhere("cli/test_receipts.py", 'exports / "dataset", *exports.glob("x.*")'),
    r"scrapy verify .*": Run(says="documents are as they were"),
    r"scrapy dedup .*": Run(),
    r"python examples/read_corpus\.py .*": (
        Elsewhere("cli/test_export_formats.py", "test_the_example_reads_what_was_written")
    ),
    r"scrapy extract .*--output-dir .*": Run(),
    r"scrapy extract .*> .*": Run(),
    r"scrapy extract .*": Run(says="."),
    # languages and models
    r"scrapy about .*--who .*": Run(says="text in Czech"),
    r"scrapy about .*": Run(says="How to keep it out"),
    r"scrapy languages|scrapy identify .*": Run(says="Czech"),
    r"scrapy train .*": Run(says="Model of "),
    r"python -m models\.block_model .*": Run(says="12 pages of 12 hosts"),
    # strategies
    r"python -m simulator mine\..*": NotRun("the strategy is still to be written by the reader"),
    r"python -m simulator\.recrawl gov": Run("--budget 0.01", "| gov | spiderling |"),
    r"python -m simulator\.recrawl blogs .*": Run("--seeds 1", "| forum | spiderling |"),
    r"python -m simulator .*--web crawls/.*": Run("--jobs 1", "| bfs |"),
    r"python -m simulator.*": Run("--pages 300 --jobs 1", "| web | strategy |"),
    # extend
    r"python -m (tests\.test_docs|docs\.architecture)": (
        Elsewhere("test_docs.py", "test_what_makes_the_pages_can_be_run_from_the_checkout")
    ),
    r"python -m docs\.picture": Elsewhere("text/test_guide.py", "test_the_picture_is_up_to_date"),
}
"""Pattern of whole lines -> how they are run; the first that fits counts."""


def rule_of(line: str) -> str:
    """The pattern of the first rule that fits *line*; '' if none does."""
    return next((pattern for pattern in RULES if re.fullmatch(pattern, line)), "")


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


LINES = {line: page for page in reversed(PAGES) for line in reversed(command_lines((ROOT / page).read_text("utf-8")))}
"""Each command line -> the first page that has it."""
COMMANDS = {line: RULES[rule] for line in reversed(LINES) if (rule := rule_of(line))}
"""Each of them in the order of the pages -> how it is run."""
