# Completion of croupier(1) for fish, printed by `croupier completion fish`.
# A row: the words before, what may follow them (an option's value after '='), what it is.
set -g __croupier_rows (string split \n -- '
@rows@')

function __croupier_complete
    set -l words (commandline -opc)
    set -l before $words[-1]
    set -l now (commandline -ct)
    set -l at croupier
    set -l skip false
    for word in $words[2..-1]
        if $skip
            set skip false
        else if contains -- $word -c --config
            set skip true
        # A group or a command; what is none is an argument. `help` is followed by one.
        else if string match -qr '^[a-z]' -- $word; and string match -q -- "$at $word"\t'*' $__croupier_rows
            set at "$at $word"
        end
    end
    set -l found
    for row in $__croupier_rows
        set -l cells (string split \t -- $row)
        if test "$cells[1]" != "$at"
            continue
        end
        if test "$before" = -c; or string match -q -- "$before=*" $cells[2]
            set found
            break
        end
        if not string match -q -- '-*' $cells[2]; or string match -q -- '-*' $now
            set -a found (string replace -r '=.*' '' -- $cells[2])\t$cells[3]
        end
    end
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path $now
    end
end

complete -c croupier -f -a '(__croupier_complete)'
