"""The texts of `brctl help TOPIC`."""

from collections.abc import Mapping

from brctl.model.exit_codes import ExitCode
from brctl.model.selectors import SELECTOR_FORMS

_EXIT_CODE_MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "healthy; or done; or nothing to do",
    ExitCode.WARNING: "degraded, or a low-confidence verdict",
    ExitCode.CRITICAL: "fault found",
    ExitCode.UNKNOWN: "cannot tell: silent nodes, a crashed check, inconclusive",
    ExitCode.DENIED: "ssh, scheduler or cluster said no",
    ExitCode.REFUSED: "a guard said no; nothing changed",
    ExitCode.WAITING: "approval needed, denied or expired; `play resume` continues",
    ExitCode.ROLLED_BACK: "failed, and everything undone",
    ExitCode.NEEDS_HUMAN: "failed with changes left in place; the journal says which",
    ExitCode.CANCELLED: "you answered no",
    ExitCode.USAGE: "bad flag, no such command, 0 nodes matched",
    ExitCode.UNAVAILABLE: "scheduler or API down, or the disk full or read-only",
    ExitCode.BUG: "unexpected error; report path printed",
    ExitCode.LOCKED: "another run holds it",
    ExitCode.CONFIG: "config, inventory, check, job or playbook invalid",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C; runs are resumable",
    ExitCode.TERMINATED: "stopped by SIGTERM; runs are resumable",
}

_SELECTORS_HEAD = """\
NODES is a folded set, the same everywhere: gpu[001-008,017]  gpu[1-9/2]  a,b  @standby
  ,  union    !  minus    &  and    ^  exclusive or     read from left to right
  'gpu*' and 'gpu?' match names of the inventory; quote them, or the shell reads them
  -w A -w B means both; -w - (and - where NODES stand) reads names from stdin"""

_SELECTORS_TAIL = """\
-x NODES is taken away last. A set that matches no node is an error (exit 64), and so is a selector
that cannot be answered now: no sweep yet, or the scheduler is silent (exit 69)."""

_OUTPUT = """\
stdout is data, stderr is talk; a pipe changes colour and progress, never the answer.
  -o json    one document: apiVersion, kind, brctl, context, generatedAt, exit_code, ...
  -o ndjson  one object a line; of `run` as each node ends, of searches as each round ends
             (first line type=version, last type=end)
  -o name    names only      -o csv  lists      -o yaml  the document as YAML
Not measured is null, never 0. `brctl schema list` names every document."""

_ENVIRONMENT = """\
BRCTL_CONFIG     configuration file         BRCTL_CONTEXT   context to use
BRCTL_READONLY   refuse every change        BRCTL_LAB_DIR   where the lab lives
BRCTL_JOURNAL_KEY  file with the key of journals, default journal.key beside config.yaml
NO_COLOR         no colour                  CLICOLOR_FORCE  colour into a pipe too
COLUMNS          how wide a line may be, also in a pipe; -o wide breaks none
XDG_CONFIG_HOME, XDG_STATE_HOME  as usual
Order: flags, environment, --config FILE, user file, /etc/brctl, built in.
Guards merge by strictness; no file is read from the current directory on its own."""


def _selectors() -> str:
    width = max(map(len, SELECTOR_FORMS))
    lines = [f"  {form:<{width}}  {meaning}" for form, meaning in SELECTOR_FORMS.items()]
    return "\n".join([_SELECTORS_HEAD, *lines, _SELECTORS_TAIL])


TOPICS: Mapping[str, str] = {
    "exit-codes": "\n".join(
        f"{int(code):>3}  {code.name:<12} {_EXIT_CODE_MEANINGS[code]}" for code in ExitCode
    ),
    "selectors": _selectors(),
    "output": _OUTPUT,
    "environment": _ENVIRONMENT,
}
