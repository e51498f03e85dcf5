"""Policies that recrawl webs which change, side by side, without a network (docs/simulator.md).

python -m simulator.recrawl [WEB ...] [--budget SHARE] [--seeds N]
"""

from __future__ import annotations

import argparse
import sys

from simulator.recrawl.comparison import BUDGETS, HEAD, POLICIES, Row, cells, compare
from simulator.recrawl.webs import PLANS, plan_of
from spiderling.base.errors import BadInput
from spiderling.base.terminal import markdown_table, progress_bar


def main(arguments: list[str]) -> int:
    """Print a table as far as it is known when all is done or at Ctrl-C; returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m simulator.recrawl",
        description="Which pages of a finished crawl are worth another request? Tries policies on webs that change.",
    )
    webs = ", ".join(PLANS)
    parser.add_argument("webs", nargs="*", metavar="WEB", help=f"webs, of {webs} (default: all)")
    parser.add_argument(
        "--budget",
        dest="budgets",
        type=float,
        action="append",
        metavar="SHARE",
        help="requests a day / live URLs, may be given several times (default .02 and .05)",
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="webs of each kind (default 1)")
    given = parser.parse_args(arguments)
    budgets = given.budgets or BUDGETS
    names = given.webs or list(PLANS)
    try:
        for name in names:
            plan_of(name)
    except BadInput as error:
        parser.error(str(error))
    if given.seeds < 1 or not all(0 < budget <= 1 for budget in budgets):
        parser.error(f"--seeds is 1 or more, --budget above 0 and at most 1; not {given.seeds}, {given.budgets}.")
    rows: list[Row] = []
    code = 0
    try:
        with progress_bar("policies") as bar:
            for row in compare(names, range(1, given.seeds + 1), budgets):
                rows.append(row)
                bar.update()
    except KeyboardInterrupt:
        print(
            f"interrupted; {len(rows)} of {len(names) * len(budgets) * len(POLICIES)} lines are done.", file=sys.stderr
        )
        code = 130
    for line in markdown_table(HEAD, map(cells, rows)):
        print(line)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
