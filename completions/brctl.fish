# fish completion for brctl; put it into ~/.config/fish/completions/
function __brctl_complete
    set -l before (commandline -opc)
    set -l found (brctl __complete (count $before) $before (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c brctl -f -k -a '(__brctl_complete)'
