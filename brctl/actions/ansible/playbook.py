"""ansible.playbook: run a site's Ansible playbook against exactly the nodes of the step.

`ansible-playbook` is a program of the site and no part of brctl. What it does leaves no mark that
brctl knows, so after a crash a person says whether to run it again.
"""

import asyncio
import hashlib
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.ansible.files import EVENTS, INVENTORY, VARIABLES, write_files
from brctl.actions.ansible.process import (
    PROGRAM,
    environment_of,
    find_program,
    private_folder,
)
from brctl.actions.ansible.results import AnsibleResults, read_results
from brctl.actions.child import last_line, run_child
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, NothingDone, Observation
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.playbook.verbs import CHECKS, LOOK_ALWAYS, LOOK_NEVER, LOOK_WHEN_PLANNING

PLAN_CHECK_S = 120.0
MOST_FORKS = 32


class AnsiblePlaybook:
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        if _check(args) == LOOK_ALWAYS:
            return Observation(done=False)
        return Observation(None, say="an Ansible playbook leaves no mark to look at", markless=True)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        """Touches no node, unless the step says `check: plan`."""
        path, check = _playbook(args), _check(args)
        find_program()
        if check == LOOK_ALWAYS:
            return ()
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, f"runs {path.name}"),)
        nodes = arguments.nodes(args, "nodes")
        if check == LOOK_WHEN_PLANNING:
            return await self._would_change(context, args, nodes)
        # The digest is in the plan, so that a saved plan does not run another text.
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        return tuple(Change(Sign.ALTER, n, f"runs {path} (sha256 {digest})") for n in nodes)

    async def _would_change(
        self, context: RunContext, args: Arguments, nodes: Sequence[str]
    ) -> Sequence[Change]:
        with tempfile.TemporaryDirectory(prefix="brctl-plan-") as folder:
            try:
                async with asyncio.timeout(PLAN_CHECK_S):
                    found = await self._run(context, args, Path(folder) / "log", check_mode=True)
            except TimeoutError:
                raise ActionFailed(f"--check took longer than {PLAN_CHECK_S:g} s") from None
        known = [(n, f"{task} (--check)") for n in nodes for task in found.changes.get(n, ())]
        lost = [(n, f"not known: {found.reasons.get(n, 'failed')}")
                for n in (*found.failed, *found.unreachable)]  # fmt: skip
        return tuple(Change(Sign.ALTER, node, what) for node, what in (*known, *lost))

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        check_mode = _check(args) == LOOK_ALWAYS
        log = _log_of(context, _playbook(args), arguments.nodes(args, "nodes"))
        found = await self._run(context, args, log, check_mode=check_mode)
        bad = (*found.failed, *found.unreachable)
        where = f"(stdout/{log.name})"
        if found.failed_elsewhere:
            raise ActionFailed(f"failed on {', '.join(found.failed_elsewhere)} {where}")
        if bad and args.get("may_fail") is not True:
            only_lost = not found.failed
            kind = FailureKind.TRANSPORT if only_lost else FailureKind.OTHER
            raise ActionFailed(f"{_say(found)} {where}", kind)
        out: Arguments = {
            "ok": list(found.ok), "changed": list(found.changed), "failed": list(found.failed),
            "unreachable": list(found.unreachable),
        }  # fmt: skip
        changed = bool(found.changed) and not check_mode
        return ActionResult(out, changed=changed, say=f"{_say(found)} {where}")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        raise ActionFailed("an Ansible playbook cannot be undone; `undo` needs a verb")

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        return Observation(None)

    async def _run(
        self, context: RunContext, args: Arguments, log: Path, *, check_mode: bool
    ) -> AnsibleResults:
        path, nodes = _playbook(args), arguments.nodes(args, "nodes")
        unknown = [node for node in nodes if node not in context.inventory.nodes]
        if unknown or not nodes:
            raise NothingDone(f"{fold(unknown) or 'nobody'} is not in the inventory")
        program = find_program()
        async with private_folder() as folder:
            write_files(folder, nodes, context.inventory, context.ssh, args.get("vars", {}))
            argv = [program, "-i", str(folder / INVENTORY), "-e", f"@{folder / VARIABLES}"]
            argv += ["--forks", str(min(len(nodes), MOST_FORKS))]
            argv += [argument for tag in _tags(args) for argument in ("--tags", tag)]
            argv += ["--check", "--diff"] if check_mode else []
            argv += ["--", str(path)]
            status = await run_child(argv, environment_of(folder, context), log, path.parent)
            found = read_results(folder / EVENTS, nodes)
        if not found.complete or found.absent:
            raise ActionFailed(_why_incomplete(found, status, log))
        if status and not (found.failed or found.unreachable or found.failed_elsewhere):
            raise ActionFailed(f"{PROGRAM}: exit status {status}: {last_line(log)}")
        return found


def _playbook(args: Arguments) -> Path:
    """The site's file; whoever may write it decides what runs on the nodes."""
    path = Path(arguments.text(args, "playbook"))
    if not path.is_absolute():
        raise NothingDone(f"`playbook` must be an absolute path, not {str(path)!r}")
    if not path.is_file():
        raise NothingDone(f"{path}: no such file")
    if path.stat().st_mode & stat.S_IWOTH:
        raise NothingDone(f"{path} can be written by anybody; chmod o-w {path}")
    return path


def _check(args: Arguments) -> str:
    check = arguments.text(args, "check", LOOK_NEVER)
    if check not in CHECKS:
        raise NothingDone(f"`check` is one of {', '.join(CHECKS)}, not {check!r}")
    return check


def _tags(args: Arguments) -> tuple[str, ...]:
    tags = arguments.texts(args, "tags") if "tags" in args else ()
    for tag in tags:
        if tag.startswith("-") or "," in tag:
            raise NothingDone(f"`tags`: {tag!r} is no tag")
    return tags


def _log_of(context: RunContext, path: Path, nodes: Sequence[str]) -> Path:
    """Nodes of a batch run side by side, each with its own output."""
    folder = context.run.folder / "stdout"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"ansible-{path.stem}{f'@{nodes[0]}' if len(nodes) == 1 else ''}.log"


def _say(found: AnsibleResults) -> str:
    parts = [f"{len(found.ok)} ok, {len(found.changed)} changed"]
    for name in ("failed", "unreachable"):
        nodes = getattr(found, name)
        if nodes:
            parts.append(f"{fold(nodes)} {name}: {found.reasons.get(nodes[0], 'no message')}")
    return "; ".join(parts)


def _why_incomplete(found: AnsibleResults, status: int, log: Path) -> str:
    message = last_line(log) or "no message"
    if not found.complete:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{PROGRAM} ended without a result ({how}): {message}"
    return f"no play was for {fold(found.absent)}: its `hosts` name others; nothing is known of it"
