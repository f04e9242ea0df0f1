#!/bin/sh
# PID 1 of a lab node, in network, PID, mount and UTS namespaces of its own.
#
# Whoever builds the node writes one line to our input once the network cable is in. End of input
# instead means that the builder died: then the node ends too, and nothing is left behind.
set -eu
read -r _ || exit 0

hostname "$BRCTL_LAB_NODE"
if [ ! -d /run/sshd ]; then
    mount -t tmpfs -o size=1m,mode=755 tmpfs /run
    mkdir /run/sshd
fi
mount --bind "$LAB_NODE_ROOT/passwd" /etc/passwd
mount --bind "$LAB_NODE_ROOT/hosts" /etc/hosts
mount --bind "$LAB_NODE_ROOT/kmsg" /dev/kmsg
mount -t tmpfs -o size=8m,mode=755 tmpfs "$BRCTL_LAB_SCRATCH"
mount -t tmpfs -o size=64m,mode=700 tmpfs "$BRCTL_LAB_MEMORY"
ip link set lo up
ip address add "$LAB_NODE_ADDRESS/24" dev eth0
ip link set eth0 up

# An init must never end and must collect orphans; `wait` does both while one child lives for ever.
unset LD_PRELOAD LD_LIBRARY_PATH
exec <&- >&- 2>&-
exec </dev/null >/dev/null 2>>"$LAB_NODE_ROOT/sshd.log"
sleep infinity &
"$LAB_SSHD" -f "$LAB_NODE_ROOT/sshd_config" -E "$LAB_NODE_ROOT/sshd.log"
while :; do wait || :; done
