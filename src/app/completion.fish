# Lines of the table: _pumice_lines KIND SECOND FORMAT, where SECOND is a field's value or "".
function _pumice_lines
    _pumice_table | awk -F '\t' -v kind="$argv[1]" -v second="$argv[2]" \
        '$1 == kind && (second == "" || $2 == second) { print $3 "\t" $4 }'
end

# The words before the cursor that are neither flags nor key=value, without the program.
function _pumice_words
    for word in (commandline -opc)[2..]
        string match -qr -- '^-|=' $word; or echo $word
    end
end

function _pumice_is
    set -l words (_pumice_words)
    test "$words[1]" = "$argv[1]"; and test -z "$argv[2]" -o "$words[2]" = "$argv[2]"
end

# Whether the command's usage has this: "keys" for key=value, "config" for a config file as the next word.
function _pumice_takes
    set -l words (_pumice_words)
    set -l what $argv[1]
    test $what = config; and set what config(count $words)
    test (count $words) -gt 0; and _pumice_lines takes $words[1] | string match -q "$what*"
end

# "key=", or "key=value" for each value once there is a "=". Paths are the shell's own work.
function _pumice_keys
    set -l word (commandline -ct)
    set -l key (string split -m 1 = -- $word)[1]
    if string match -q '*=*' -- $word
        for value in (string split ' ' -- (_pumice_lines $argv[1] $key | string split -f 1 \t))
            test "$value" = file; and __fish_complete_path (string split -m 1 = -- $word)[2] |
                string replace -r '^' "$key="; or echo "$key=$value"
        end
    else if test -n "$word"
        _pumice_table | awk -F '\t' -v kind="$argv[1]" '$1 == kind { print $2 "=\t" $4 }'
    end
end

function _pumice_count
    test (count (_pumice_words)) -eq $argv[1]
end

complete -c pumice -n '_pumice_count 0' -f -a '(_pumice_table | awk -F "\t" \'$1 == "command" { print $2 "\t" $3 }\')'
complete -c pumice -n '_pumice_count 0' -f -a help -d 'explain a command'
complete -c pumice -n '_pumice_count 1; and _pumice_is help' -f -a '(_pumice_table | awk -F "\t" \'$1 == "command" { print $2 "\t" $3 }\')'
complete -c pumice -n '_pumice_count 0' -l version -d 'name and version'
complete -c pumice -l json -d 'one JSON object on standard output'
complete -c pumice -l help -s h -d 'explain the command'
complete -c pumice -s v -d 'more messages'
complete -c pumice -s q -d 'fewer messages'
for line in (_pumice_table | string match -r '^flag\t.*')
    set -l field (string split \t -- $line)
    set -l value
    test -n "$field[4]"; and set value -r
    complete -c pumice -n "_pumice_is $field[2]" -l (string sub -s 3 -- $field[3]) $value -d "$field[4]"
end
for line in (_pumice_table | string match -r '^part\t.*')
    set -l field (string split \t -- $line)
    complete -c pumice -n "_pumice_count 1; and _pumice_is $field[2]" -f -a $field[3]
end
complete -c pumice -n '_pumice_count 2; and _pumice_is dataset convert' -f -a '(_pumice_table | awk -F "\t" \'$1 == "format" { print $2 "\t" $3 }\')'
complete -c pumice -n '_pumice_is dataset convert' -a '(_pumice_keys option)'
complete -c pumice -n '_pumice_takes config' -k -a '(__fish_complete_suffix .json)'
complete -c pumice -n '_pumice_takes keys; and not _pumice_count 1' -a '(_pumice_keys key)'
