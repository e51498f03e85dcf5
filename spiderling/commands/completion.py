"""``scrapy completion SHELL``: what makes a shell complete the commands, their options, and the values of these."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from shlex import quote
from typing import Any, cast

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from spiderling import commands
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.cli.command import OwnCommand, SpiderlingCommand

_BASH = """\
_spiderling() {
    local words= current=${COMP_WORDS[COMP_CWORD]}
    case "$COMP_CWORD ${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]} $current" in
CASES
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _spiderling spiderling"""
"""The first of CASES that fits the number of the word, the command, the word before and the word says the choice."""
_ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit"  # then zsh reads what bash does
_SHELLS = ("bash", "zsh", "fish")


class Command(SpiderlingCommand):
    arguments = "|".join(_SHELLS)
    summary = "Write what makes a shell complete commands and options"
    description = (
        "Write what makes bash, zsh or fish complete the commands of spiderling, their options and the values of "
        "these, for a file that the shell reads: ~/.local/share/bash-completion/completions/spiderling, "
        "~/.config/fish/completions/spiderling.fish, or one that ~/.zshrc sources. Example: scrapy completion bash"
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) != 1 or args[0] not in _SHELLS:
            raise UsageError(f"name a shell: scrapy completion {self.arguments}", print_help=False)
        found = {name: import_module(f"spiderling.commands.{name}").Command() for name in commands.NAMES}
        lines = list((_fish if args[0] == "fish" else _cases)(found))
        if args[0] == "fish":
            yield from lines
            return
        yield from [_ZSH] if args[0] == "zsh" else []
        yield from _BASH.replace("CASES", "\n".join(lines)).split("\n")


class _Parser:
    """Stands for the parser of a command, and lists the options that it adds, in groups too."""

    usage = description = ""

    def __init__(self) -> None:
        self._parser = argparse.ArgumentParser(conflict_handler="resolve")
        self.listed = [self._parser.add_argument("-h", "--help", action="help", help="show the help, and end")]

    def add_argument(self, *names: str, **words: Any) -> None:
        self.listed.append(self._parser.add_argument(*names, **words))

    def add_argument_group(self, *names: str, **words: str) -> _Parser:
        return self


def _options(command: OwnCommand) -> Iterator[tuple[argparse.Action, list[str]]]:
    """The options of a command, those that each of Scrapy's has among them, with the values that can be listed."""
    command.settings = Settings()
    parser = _Parser()
    command.add_options(cast(argparse.ArgumentParser, parser))
    for action in parser.listed:
        values = [f"{PREFIX}{spec.name.upper()}=" for spec in fields(Options)] if action.dest == "set" else []
        yield action, values or list(action.choices or ())


def _cases(found: dict[str, OwnCommand]) -> Iterator[str]:
    yield f"        1\\ *) words={quote(' '.join(found))} ;;"
    for name, command in found.items():
        flags: list[str] = []
        for action, values in _options(command):
            flags += action.option_strings
            places = " | ".join(f'*" {name} {flag} "*' for flag in action.option_strings)
            yield from [f"        {places}) words={quote(' '.join(values))} ;;"] if values else []
        yield f'        *" {name} "*" -"*) words={quote(" ".join(flags))} ;;'


def _fish(found: dict[str, OwnCommand]) -> Iterator[str]:
    for name, command in found.items():
        yield f"complete -c spiderling -n __fish_use_subcommand -f -a {name} -d {quote(command.short_desc())}"
        for action, values in _options(command):
            flags = (f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings)
            takes = f"-x -a {quote(' '.join(values))}" if values else "" if action.nargs == 0 else "-r"
            text = quote((action.help or "").replace("%%", "%"))
            yield f"complete -c spiderling -n '__fish_seen_subcommand_from {name}' {' '.join(flags)} {takes} -d {text}"
