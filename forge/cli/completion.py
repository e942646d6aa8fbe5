"""completion: the script that makes a shell complete commands, options and ids."""

from typing import Annotated, Literal

import typer

from forge.cli.options import Json
from forge.cli.output import emit_json, emit_text

Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")]
SCRIPTS = {
    "bash": """\
_forge_completion() {
    local IFS=$'\\n' current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=($(forge __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    case ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac
}
complete -o default -F _forge_completion forge
""",
    "zsh": """\
#compdef forge
_forge_completion() {
    local -a found
    found=("${(@f)$(forge __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -Q -- $found
    else
        _files
    fi
}
compdef _forge_completion forge
""",
    "fish": """\
function __forge_completion
    set -l words (commandline -opc) (commandline -ct)
    forge __complete $words[2..] 2>/dev/null
end
complete -c forge -a '(__forge_completion)'
""",
}
"""Shell -> a script for it. Each asks `forge __complete` with the words up to the cursor."""


def completion(shell: Shell, as_json: Json = False) -> None:
    """Print the script that makes a shell complete commands, options and ids.

    Put its output where the shell reads it: `forge completion bash >> ~/.bashrc`.

    Example: forge completion bash
    """
    if as_json:
        emit_json({"shell": shell, "script": SCRIPTS[shell]})
    else:
        emit_text(SCRIPTS[shell])
