"""Controls of the live page: each becomes an entry of control.yaml, so it is logged and survives a restart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from spiderling.base.atomic_files import write_whole
from spiderling.base.errors import BadInput
from spiderling.base.small_yaml import nodes_of
from spiderling.base.urls import canonicalize
from spiderling.jobdir.control_file import ControlFile, hosts_of, read_control

_NO_NAME = re.compile(r"[\s/?#@:\\]")
BUDGETS = ("max_pages", "max_downloaded_mb")


def change(path: Path, wanted: Mapping[str, Any]) -> str:
    """Change the file at *path* as the control *wanted* says, and return that in words; raises BadInput, StorageError.

    What *wanted* does not name stays as it is, comments too.
    """
    text = _text_at(path)
    former = ControlFile.parse(text)
    new, said = _changed(former, wanted)
    for key, value in asdict(new).items():
        if value != getattr(former, key):
            text = with_entry(text, key, value)
    if asdict(ControlFile.parse(text)) != asdict(new):
        raise BadInput(f"{path} is written in a way that the page cannot change; change it by hand")
    write_whole(path, text)
    return said


def _text_at(path: Path) -> str:
    try:
        return read_control(path)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error


def _changed(former: ControlFile, wanted: Mapping[str, Any]) -> tuple[ControlFile, str]:
    action = wanted.get("action")
    if action in ("pause", "resume"):
        return replace(former, pause=action == "pause"), f"{action} is written into control.yaml"
    if action == "budget":
        limits = {key: wanted[key] for key in BUDGETS if wanted.get(key) is not None}
        if not limits:
            raise BadInput(f"a budget needs {' or '.join(BUDGETS)}")
        new = ControlFile.parse(json.dumps({**asdict(former), **limits}))
        return new, "the budget is written into control.yaml"
    if action not in ("block", "reopen"):
        raise BadInput("action must be pause, resume, block, reopen or budget")
    return _with_host(former, action, _host(wanted.get("host")))


def _with_host(former: ControlFile, action: str, host: str) -> tuple[ControlFile, str]:
    blocked = [entry for entry in former.block if entry != host]
    reopened = [entry for entry in former.reopen if entry != host]
    if action == "block":
        return replace(former, block=[*blocked, host], reopen=reopened), f"{host} is blocked in control.yaml"
    if hosts_of(blocked).holds(host):
        raise BadInput(f"block: in control.yaml has an entry for several hosts that holds {host}; change it there")
    if host in former.reopen:
        raise BadInput(f"{host} stands under reopen: in control.yaml already; take it out there first")
    return replace(former, block=blocked, reopen=[*reopened, host]), f"{host} is reopened in control.yaml"


def _host(name: object) -> str:
    is_name = isinstance(name, str) and not _NO_NAME.search(name)
    target = canonicalize(f"http://{name}/") if is_name else None
    if target is None:
        raise BadInput(f"{name!r} is no host name")
    return target.host


def with_entry(text: str, key: str, value: object) -> str:
    """The YAML *text* with *value* for *key*, in the place of the former value if there is one; None removes it.

    >>> with_entry("# mine\\nblock:\\n  - a.test  # bad\\npause: true", "block", ["b.test"])
    '# mine\\nblock: ["b.test"]  # bad\\npause: true'
    """
    line = "" if value is None else f"{key}: {json.dumps(value)}"
    lines = text.splitlines()
    root = nodes_of(text)
    for named, node in root.value if isinstance(root, yaml.MappingNode) and not root.flow_style else ():
        if named.value == key:
            begin = named.start_mark.line
            end = _end(node)
            rest = lines[end.line][end.column :]
            lines[begin : end.line + 1] = [f"{line}{rest}"] if line or rest.strip() else []
            return "\n".join(lines)
    return "\n".join([*lines, line, ""])


def _end(node: yaml.Node) -> Any:
    """Where *node* ends: that of a block sequence is told as the next token, behind all comments."""
    while isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        node = node.value[-1]
    return node.end_mark
