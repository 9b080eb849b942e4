# Completion of croupier(1) for bash, printed by `croupier completion bash`.
# A row: the words before, what may follow them (an option's value after '='), what it is.
_croupier_rows='
@rows@'

_croupier()
{
    local i word row rows at=croupier now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} found=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        -c | --config) ((i++)) ;;
        # A group or a command; what is none is an argument. `help` is followed by one.
        [a-z]*) [[ $_croupier_rows != *$'\n'"$at $word"$'\t'* ]] || at+=" $word" ;;
        esac
    done
    COMPREPLY=()
    # Where the table has nothing to offer, bash offers names of files.
    [[ $before != -c && $before != = ]] || return 0
    mapfile -t rows <<<"$_croupier_rows"
    for row in "${rows[@]}"; do
        [[ $row == "$at"$'\t'* ]] || continue
        word=${row#*$'\t'} word=${word%%$'\t'*}
        [[ $word != "$before="* ]] || return 0
        [[ $word == -* && $now != -* ]] || found+=" ${word%%=*}"
    done
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "$now")
}

complete -o default -F _croupier croupier
