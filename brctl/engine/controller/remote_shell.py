"""The shell that reads a person's words on a node, and ends with the connection that brought it."""

# Without a terminal sshd leaves a command alone whose connection is gone, and `sleep 600` would go
# on. So a watch asks once a second for the parent of this shell, and when that is another one than
# at first, because sshd's process has ended, it ends the process group. Where /proc does not tell
# it ends nothing. The words run in a shell of their own, which keeps the name in /proc simple.
_WATCHED = """\
(while read -r _ _ _ p _ </proc/$$/stat; do
  [ "$p" = "$PPID" ] || kill -TERM 0
  sleep 1
done) </dev/null >/dev/null 2>&1 &
w=$!
sh -c "$1"
s=$?
exec 2>/dev/null
kill $w
exit $s"""


def shell_argv(words: str) -> tuple[str, ...]:
    """What runs these words on a node."""
    return ("sh", "-c", _WATCHED, "brctl-run", words)
