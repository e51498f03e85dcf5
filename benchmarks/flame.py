"""Where the main process of a crawl spends its time: a flame graph of the synthetic web's crawl, by py-spy.

    python benchmarks/flame.py [--quick]            # make profile

Writes benchmarks/flame.svg (open it in a browser); only what holds the interpreter is sampled, so waiting is left out.
py-spy is in benchmarks/requirements.txt.  The run is slower than without the sampler; read shares, not milliseconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, served
from benchmarks.crawl import FAST
from webs.synthetic import SyntheticWeb, read_words

_HOSTS = 5000


def main() -> None:
    pages = 500 if arguments(__doc__).quick else 2500
    sampler = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if sampler is None:
        sys.exit("py-spy is missing: pip install -r benchmarks/requirements.txt")
    web = SyntheticWeb(_HOSTS, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    with served(f"synthetic:{_HOSTS}:1") as hosts, tempfile.TemporaryDirectory() as directory:
        seeds = Path(directory, "seeds.txt")
        seeds.write_text("\n".join(web.seeds(_HOSTS // 10)))
        settings = {
            **FAST, "SPIDERLING_HOSTS": hosts, "JOBDIR": f"{directory}/job", "CLOSESPIDER_PAGECOUNT": pages,
            "LOG_LEVEL": "WARNING",
        }  # fmt: skip
        graph = ROOT / "benchmarks/flame.svg"
        command = [sampler, "record", "--gil", "-r", "250", "-o", str(graph), "--"]
        command += [sys.executable, "-m", "scrapy", "crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"]
        command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        subprocess.check_call(command, cwd=ROOT)
    print(graph)


if __name__ == "__main__":
    main()
