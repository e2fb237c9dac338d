# Completion of fuseline's verbs, options and pipeline files in fish. Everything is asked of the program's own --help.
# SPDX-License-Identifier: Apache-2.0

function __fuseline_verbs
    set -l program (commandline -opc)[1]
    $program --help 2>/dev/null | sed -n '/^Subcommands:/,$s/^  \([a-z]\{1,\}\)  *\(.*\)/\1\t\2/p'
end

function __fuseline_options
    set -l words (commandline -opc)
    $words[1] $words[2] --help 2>/dev/null | string match -ra -- '--[a-z][a-z-]*' | sort -u
end

complete -c fuseline -n __fish_use_subcommand -f -a '(__fuseline_verbs)'
complete -c fuseline -n 'not __fish_use_subcommand' -a '(__fuseline_options)'
