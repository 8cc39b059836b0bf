# _pumice_lines KIND [SECOND [N]]: field N (3) of the table's lines of that kind and second field.
_pumice_lines()
{
    _pumice_table | awk -F '\t' -v kind="$1" -v second="$2" -v n="${3:-3}" \
        '$1 == kind && (second == "" || $2 == second) { print $n }'
}

# "name:help" of the table's lines of a kind, for _describe.
_pumice_described()
{
    _pumice_table | awk -F '\t' -v kind="$1" '$1 == kind { gsub(/:/, "\\:", $3); print $2 ":" $3 }'
}

# key= of each key, or the values once there is a "=".
_pumice_keys()
{
    local kind=$1 key values
    if compset -P 1 '*='; then
        key=${IPREFIX%=}
        values=$(_pumice_lines $kind $key)
        if [[ $values == file ]]; then
            _files
        else
            compadd -- ${=values}
        fi
    elif [[ -n $PREFIX ]]; then
        compadd -S = -q -- ${(f)"$(_pumice_lines $kind '' 2)"}
    fi
}

_pumice()
{
    local word flag='' command='' part='' previous='' takes
    local -i count=0
    local -a rows
    for word in ${words[2,CURRENT-1]}; do
        flag=''
        [[ $previous == --* ]] && flag=$(_pumice_table |
            awk -F '\t' -v c="$command" -v f="$previous" '$1 == "flag" && $2 == c && $3 == f { print $4 }')
        previous=$word
        [[ -n $flag || $word == -* || $word == *=* ]] && continue
        count+=1
        ((count == 1)) && command=$word
        ((count == 2)) && part=$word
    done
    if [[ $previous == --* ]]; then
        flag=$(_pumice_table |
            awk -F '\t' -v c="$command" -v f="$previous" '$1 == "flag" && $2 == c && $3 == f { print $4 }')
        case $flag in
        '') ;;
        *FOLDER*) _files -/ ; return ;;
        *FILE*) _files ; return ;;
        *) _message $flag ; return ;;
        esac
    fi
    if [[ $PREFIX == -* ]]; then
        compadd -- ${(f)"$(_pumice_lines flag $command)"} --json --help -v -q
        return
    fi
    if ((count == 0)) || [[ $count:$command == 1:help ]]; then
        rows=(${(f)"$(_pumice_described command)"})
        ((count)) || rows+=('help:explain a command')
        _describe command rows
        return
    fi
    rows=(${(f)"$(_pumice_lines part $command)"})
    if ((count == 1 && ${#rows})); then
        compadd -- $rows
        [[ $(_pumice_lines takes $command) == *config1* ]] || return
    fi
    if [[ $count:$command:$part == 2:dataset:convert ]]; then
        rows=(${(f)"$(_pumice_described format)"})
        _describe format rows
        return
    fi
    [[ $command:$part == dataset:convert ]] && _pumice_keys option
    takes=$(_pumice_lines takes $command)
    [[ $takes == *keys* ]] && ((count > 1)) && _pumice_keys key
    [[ -n $IPREFIX ]] && return
    if [[ $takes == *config$count* ]]; then
        _files -g '*.json(-.)'
    else
        _files
    fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _pumice "$@"
else
    compdef _pumice pumice
fi
