"""``make release``: builds what a release consists of, installs each part where nothing else is, and works with it.

    python -m release [PYTHON...]     a compiled wheel for each of these interpreters, by default for this one

It builds what is committed. Everything is in ``build/release``, what is to be published in ``build/release/dist``.
Nothing is published, and no container is built: that is done by .github/workflows/release.yml.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build/release"
SOURCE = PLACE / "source"
DIST = PLACE / "dist"
TARGET = "x86_64-linux-gnu.2.28" if os.uname().machine == "x86_64" else "aarch64-linux-gnu.2.28"
"""The processor and the glibc that a compiled wheel is built for: that of Debian 10 and RHEL 8."""
PLATFORM = f"manylinux_2_28_{os.uname().machine}"
COMPILER = f"{sysconfig.get_path('purelib')}/ziglang/zig cc -target {TARGET}"
"""The program itself: in the environments that pip builds in, ours cannot import its module."""
PAGE = "<title>Pavouk</title><h1>Pavouk</h1><p>" + "Pavouk u cesty spřádá síť a čeká, až do ní něco spadne. " * 9
"""A page with running text in Czech."""
STEPS = "from spiderling.text.steps import choose; print(choose().words)"
WORDS = 20_000
"""Words after which a crawl of the bundled web pauses."""


def main(interpreters: list[str]) -> None:
    """Build and try everything; ends at the first thing that fails."""
    shutil.rmtree(PLACE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    run(ROOT, "git", "archive", "--output", PLACE / "source.tar", "HEAD")
    shutil.unpack_archive(PLACE / "source.tar", SOURCE, filter="data")
    run(SOURCE, Path(sys.executable).with_name("cffconvert"), "--validate")
    for project in (SOURCE, SOURCE / "simulator"):
        run(project, sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    for interpreter in interpreters or [sys.executable]:
        compiled(interpreter)
    run(DIST, sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    (wheel,) = DIST.glob("scrapy_spiderling-*.whl")
    (sdist,) = DIST.glob("scrapy_spiderling-*.tar.gz")
    (simulator,) = DIST.glob("spiderling_simulator-*.whl")
    texts = {text_by(wheel, simulator), text_by(sdist)}
    for interpreter in interpreters or [sys.executable]:
        texts.add(text_by(wheel, native_for(interpreter), interpreter=interpreter))
    assert len(texts) == 1, "the text of a page depends on how it was installed"
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    print("".join(sums) + f"In {DIST.relative_to(ROOT)}. Not done here: containers, wheels for aarch64, publishing.")


def compiled(interpreter: str) -> None:
    """The wheel of the compiled steps for one interpreter, which runs on every Linux from glibc 2.28 on."""
    made = PLACE / "made"
    shutil.rmtree(made, ignore_errors=True)
    pip_wheel = [interpreter, "-m", "pip", "--quiet", "wheel", "--no-deps", "--wheel-dir", made, SOURCE / "native"]
    run(SOURCE, *pip_wheel, CC=COMPILER)
    (wheel,) = made.glob("*.whl")
    tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    repair = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--wheel-dir", DIST, wheel]
    run(SOURCE, *repair, **tools)


def native_for(interpreter: str) -> Path:
    """The compiled wheel for an interpreter."""
    tag = "import sys; print(f'cp{sys.version_info[0]}{sys.version_info[1]}')"
    (wheel,) = DIST.glob(f"spiderling_native-*-{run(DIST, interpreter, '-c', tag).strip()}-*.whl")
    return wheel


def text_by(*parts: Path, interpreter: str = sys.executable) -> str:
    """The text of a page by *parts* where nothing else is installed, and no compiler is; a crawl runs there too."""
    started = time.monotonic()
    home = PLACE / parts[-1].name.partition("-py3-")[0]
    home.mkdir()
    (home / "page.html").write_text(PAGE, "utf-8")
    run(home, interpreter, "-m", "venv", "env")
    bare = {"PATH": f"{home}/env/bin"}
    run(home, "env/bin/python", "-m", "pip", "--quiet", "install", "-c", ROOT / "constraints.txt", *parts, **bare)
    installed = time.monotonic()
    text = run(home, "env/bin/spiderling", "extract", "page.html", "--lang", "cs", **bare)
    extracted = time.monotonic()
    steps = run(home, "env/bin/python", "-c", STEPS, **bare).strip()
    is_native = any("native" in part.name for part in parts)
    assert text.count("Pavouk u cesty") == 9 and steps.startswith("compiled" if is_native else "Python: "), steps
    for folder in ("examples", "webs"):  # not the package: what was installed crawls
        (home / folder).symlink_to(SOURCE / folder)
    crawl = ["env/bin/python", "-m", "examples.demo", home / "crawl", "-a", f"words={WORDS}"]
    assert "was paused (budget-words)" in run(home, *crawl, **bare)
    said = f"installed in {installed - started:.0f} s, text of a page in {extracted - installed:.1f} s"
    print(f"{' and '.join(part.name for part in parts)}: {said}, a crawl of {WORDS} words; {steps}", flush=True)
    return text


def run(cwd: Path, *command: object, **environment: str) -> str:
    """The output of *command*; if it fails, that is shown, and all ends."""
    ended = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        sys.exit(f"{ended.stdout}\nThis has failed: {' '.join(map(str, command))}")
    return ended.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
