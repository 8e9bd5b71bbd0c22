"""``polytrain completion``: scripts that let a shell complete commands, options and choices."""

from __future__ import annotations

import argparse
from typing import Any

from polytrain.cli.common import add_command, show

__all__ = ["add_parser"]

DESCRIPTION = """\
Print a script for the shell. It is made from the options that this version has; after an upgrade, make it anew."""

EXAMPLES = """\
  polytrain completion bash > ~/.local/share/bash-completion/completions/polytrain
  polytrain completion zsh > ~/.zfunc/_polytrain        (with fpath+=~/.zfunc before compinit in ~/.zshrc)
  polytrain completion fish > ~/.config/fish/completions/polytrain.fish"""

#: Options of one command: (spellings, choices, whether a value follows, help).
Option = tuple[list[str], list[str], bool, str]


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "completion",
        run,
        summary="print a script for shell completion",
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    parser.set_defaults(commands=subparsers)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell]
    summaries = {action.dest: action.help or "" for action in arguments.commands._choices_actions}
    script = write({name: _options(parser) for name, parser in arguments.commands.choices.items()}, summaries)
    for line in script.split("\n"):
        show(line)
    return 0


def _options(parser: argparse.ArgumentParser) -> list[Option]:
    """Read the options, and the positional arguments that have choices, off a parser."""
    return [
        (
            list(action.option_strings),
            [str(choice) for choice in action.choices or ()],
            action.nargs != 0,
            (action.help or "").split(" (default")[0],
        )
        for action in parser._actions
        if action.option_strings or action.choices
    ]


def _bash(commands: dict[str, list[Option]], summaries: dict[str, str]) -> str:
    cases, values = [], []
    for name, options in commands.items():
        words = [word for spellings, choices, _, _ in options for word in (spellings or choices)]
        cases.append(f'        {name}) words="{" ".join(words)}" ;;')
        for spellings, choices, _, _ in options:
            if spellings and choices:
                values.append(f'        {name}:{spellings[-1]}) words="{" ".join(choices)}"; only=1 ;;')
    return "\n".join(
        [
            "# bash completion for polytrain",
            "_polytrain() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words="" only=""',
            "    COMPREPLY=()",
            "    if (( COMP_CWORD == 1 )); then",
            f'        COMPREPLY=( $(compgen -W "{" ".join(commands)} --help --version" -- "$current") )',
            "        return",
            "    fi",
            '    case "${COMP_WORDS[1]}" in',
            *cases,
            "    esac",
            '    case "${COMP_WORDS[1]}:$before" in',
            *values,
            "    esac",
            '    COMPREPLY=( $(compgen -W "$words" -- "$current") )',
            '    if [[ -z "$only" && "$current" != -* ]]; then',
            '        COMPREPLY+=( $(compgen -f -- "$current") )',
            "    fi",
            "}",
            "complete -o filenames -F _polytrain polytrain",
        ]
    )


def _zsh_text(text: str) -> str:
    """Make text safe within a single-quoted specification of _arguments."""
    for special in ("\\", "[", "]", ":"):
        text = text.replace(special, "\\" + special)
    return text.replace("'", "'\\''").replace("%%", "%")


def _zsh(commands: dict[str, list[Option]], summaries: dict[str, str]) -> str:
    described = [f"        '{name}:{_zsh_text(summaries.get(name, ''))}'" for name in commands]
    cases = []
    for name, options in commands.items():
        specifications = []
        for spellings, choices, has_value, text in options:
            action = f"({' '.join(choices)})" if choices else "_files"
            if not spellings:
                specifications.append(f"'1:{_zsh_text(text) or 'value'}:{action}'")
            for spelling in spellings:
                value = f":value:{action}" if has_value else ""
                specifications.append(f"'{spelling}[{_zsh_text(text)}]{value}'")
        body = " \\\n                ".join(specifications)
        cases.append(
            f"        {name})\n            _arguments \\\n                {body} \\\n                '*:file:_files' ;;"
        )
    return "\n".join(
        [
            "#compdef polytrain",
            "_polytrain() {",
            "    local -a commands=(",
            *described,
            "    )",
            "    if (( CURRENT == 2 )); then",
            "        _describe command commands",
            "        return",
            "    fi",
            "    local command=${words[2]}",
            "    shift words; (( CURRENT-- ))",
            "    case $command in",
            *cases,
            "    esac",
            "}",
            # Found in fpath the file is the function; sourced, it has to announce it.
            'if [[ "$funcstack[1]" = "_polytrain" ]]; then _polytrain "$@"; else compdef _polytrain polytrain; fi',
        ]
    )


def _fish_text(text: str) -> str:
    return text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")


def _fish(commands: dict[str, list[Option]], summaries: dict[str, str]) -> str:
    lines = ["# fish completion for polytrain"]
    for name in commands:
        text = _fish_text(summaries.get(name, ""))
        lines.append(f"complete -c polytrain -n __fish_use_subcommand -f -a {name} -d '{text}'")
    for name, options in commands.items():
        start = f"complete -c polytrain -n '__fish_seen_subcommand_from {name}'"
        for spellings, choices, has_value, text in options:
            words = f" -a '{' '.join(choices)}'" if choices else ""
            if not spellings:
                lines.append(f"{start}{words}")
                continue
            names = "".join(
                f" -l {spelling[2:]}" if spelling.startswith("--") else f" -s {spelling[1:]}" for spelling in spellings
            )
            takes = " -x" if choices else " -r" if has_value else ""
            lines.append(f"{start}{names}{takes}{words} -d '{_fish_text(text)}'")
    return "\n".join(lines)
