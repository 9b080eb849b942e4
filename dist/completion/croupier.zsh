#compdef croupier
# Completion of croupier(1) for zsh, printed by `croupier completion zsh`: a file _croupier on $fpath.
# A row: the words before, what may follow them (an option's value after '='), what it is.

_croupier()
{
    local rows='
@rows@'
    local at=croupier before=$words[CURRENT-1] now=$words[CURRENT] row word
    local -a cells found
    integer i
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        case $word in
        -c | --config) ((i++)) ;;
        # A group or a command; what is none is an argument. `help` is followed by one.
        [a-z]*) [[ $rows != *$'\n'"$at $word"$'\t'* ]] || at+=" $word" ;;
        esac
    done
    if [[ $before != -c ]]; then
        for row in ${(f)rows}; do
            cells=("${(@ps:\t:)row}")
            [[ $cells[1] == $at ]] || continue
            if [[ $cells[2] == $before=* ]]; then
                found=()
                break
            fi
            [[ $cells[2] == -* && $now != -* ]] || found+=("${cells[2]%%=*}:$cells[3]")
        done
    fi
    if (( $#found )); then
        _describe croupier found
    else
        _files
    fi
}

# By the file on $fpath, or by `source`.
if [[ $funcstack[1] == _croupier ]]; then
    _croupier "$@"
elif (( $+functions[compdef] )); then
    compdef _croupier croupier
fi
