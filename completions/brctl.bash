# bash completion for brctl; source it, or put it into /etc/bash_completion.d/
_brctl() {
    local IFS=$'\n'
    COMPREPLY=($(brctl __complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null))
}
complete -o default -F _brctl brctl
