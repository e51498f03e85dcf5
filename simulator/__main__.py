"""``python -m simulator STRATEGY...`` in a checkout: what ``scrapy simulate`` does where the simulator is installed."""

from __future__ import annotations

import sys

from scrapy.cmdline import execute
from scrapy.utils.project import get_project_settings

from simulator import simulate


def main() -> None:
    """Run the command with the arguments in ``sys.argv``; exits with its code."""
    arguments = sys.argv[1:]
    sys.argv[0] = simulate.MODULE  # its name in usage lines and messages; python -m has put a path there
    settings = get_project_settings()
    settings.set("COMMANDS_MODULE", simulate.__name__, priority="cmdline")
    execute(["scrapy", "simulate", *arguments], settings)


if __name__ == "__main__":
    main()
