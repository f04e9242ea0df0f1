# fish completion for brctl; put it into ~/.config/fish/completions/
function __brctl_complete
    set -l before (commandline -opc)
    brctl __complete (count $before) $before (commandline -ct) 2>/dev/null
end
complete -c brctl -f -a '(__brctl_complete)'
