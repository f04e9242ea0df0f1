# bash completion for brctl; source it, or put it into /etc/bash_completion.d/
_brctl() {
    local line=${COMP_LINE:0:COMP_POINT} typed kept word about
    local -a words
    # bash breaks words at @, : and = too, which node sets and --flag=value are made of.
    read -ra words <<< "$line"
    [[ -z $line || ${line: -1} == [[:space:]] ]] && words+=("")
    typed=${words[-1]}
    # What stands before the last break stays; @ begins a word, and in quotes nothing breaks one.
    kept=${typed%"${typed##*["$COMP_WORDBREAKS"]}"}
    kept=${kept%@}
    [[ $typed == [\'\"]* ]] && kept=
    COMPREPLY=()
    while IFS=$'\t' read -r word about; do
        # Only a list that is looked at shows meanings; what is put into the line must not.
        word=${word#"$kept"}
        if [[ $COMP_TYPE == 63 && -n $about ]]; then
            word="$word  ($about)"
        fi
        COMPREPLY+=("$word")
    done < <(brctl __complete "$((${#words[@]} - 1))" "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 ]]; then
        COMPREPLY[0]=${COMPREPLY[0]%%  (*}
    fi
}
complete -o default -o nosort -F _brctl brctl
