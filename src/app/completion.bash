# _pumice_lines KIND [FIELD2 [PRINT]]: field PRINT (3) of the table's lines of that kind and second field.
_pumice_lines()
{
    _pumice_table | awk -F '\t' -v kind="$1" -v second="$2" -v n="${3:-3}" \
        '$1 == kind && (second == "" || $2 == second) { print $n }'
}

# _pumice_add CANDIDATE ...: those that begin as the word at the cursor does.
_pumice_add()
{
    local word
    for word; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
}

# _pumice_paths WORD [-d|-f [ENDING]]: adds files, or folders only; with ENDING folders and such files.
_pumice_paths()
{
    local path
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        if [[ -z $3 || -d $path || $path == *"$3" ]]; then
            COMPREPLY+=("$path")
        fi
    done < <(compgen "${2:--f}" -- "$1")
}

# The values of key=..., the word at the cursor being all of it.
_pumice_value()
{
    local kind=$1 key=${cur%%=*} value=${cur#*=} values word
    values=$(_pumice_lines "$kind" "$key")
    if [[ $values == file ]]; then
        _pumice_paths "$value"
        return
    fi
    for word in $values; do
        [[ $word == "$value"* ]] && COMPREPLY+=("$word")
    done
    # bash replaces what follows "=" only when "=" divides words.
    [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$key=}")
}

_pumice_keys()
{
    local kind=$1 key
    while IFS= read -r key; do
        _pumice_add "$key="
    done < <(_pumice_lines "$kind" '' 2)
    ((${#COMPREPLY[@]})) && compopt -o nospace 2>/dev/null
}

_pumice()
{
    local line=${COMP_LINE:0:COMP_POINT} cur command='' part='' word flag takes previous='' words=0
    local -a before
    COMPREPLY=()
    cur=${line##*[[:space:]]}
    read -ra before <<<"${line%"$cur"}"
    for word in "${before[@]:1}"; do
        flag=''
        [[ $previous == --* ]] && flag=$(_pumice_table | awk -F '\t' -v c="$command" -v f="$previous" \
            '$1 == "flag" && $2 == c && $3 == f { print $4 }')
        previous=$word
        [[ -n $flag || $word == -* || $word == *=* ]] && continue
        words=$((words + 1))
        [[ $words == 1 ]] && command=$word
        [[ $words == 2 ]] && part=$word
    done
    if [[ $previous == --* ]]; then
        flag=$(_pumice_table | awk -F '\t' -v c="$command" -v f="$previous" \
            '$1 == "flag" && $2 == c && $3 == f { print $4 }')
        case $flag in
        '') ;;
        *FOLDER*) _pumice_paths "$cur" -d && return ;;
        *FILE*) _pumice_paths "$cur" && return ;;
        *) return ;;
        esac
    fi
    # shellcheck disable=SC2046 # words without blanks
    case $words:$cur in
    *:-*) _pumice_add $(_pumice_lines flag "$command") --json --help -v -q && return ;;
    0:*) _pumice_add $(_pumice_lines command '' 2) help --version && return ;;
    1:*)
        if [[ $command == help ]]; then
            _pumice_add $(_pumice_lines command '' 2)
            return
        fi
        # shellcheck disable=SC2046
        _pumice_add $(_pumice_lines part "$command")
        takes=$(_pumice_lines takes "$command")
        [[ -z $(_pumice_lines part "$command") || $takes == *config1* ]] || return
        ;;
    esac
    if [[ $command:$part == dataset:convert ]]; then
        # shellcheck disable=SC2046
        [[ $words == 2 ]] && _pumice_add $(_pumice_lines format '' 2) && return
        [[ $cur == *=* ]] && _pumice_value option && return
        [[ -n $cur ]] && _pumice_keys option
    fi
    takes=$(_pumice_lines takes "$command")
    if [[ $takes == *keys* && $cur == *=* ]]; then
        _pumice_value key
        return
    fi
    [[ $takes == *keys* && -n $cur && $words -gt 1 ]] && _pumice_keys key
    if [[ $takes == *config$words* ]]; then
        _pumice_paths "$cur" -f .json
    elif ((${#COMPREPLY[@]} == 0)); then
        _pumice_paths "$cur"
    fi
}

complete -F _pumice pumice
