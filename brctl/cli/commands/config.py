"""`brctl config path|view|sudoers`: where configuration comes from, what it says and needs."""

from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.library.config import candidate_files, user_state_dir
from brctl.view.notices.page import Page
from brctl.view.text import columns

app = new_app()


@app.command()
def path(ctx: typer.Context) -> None:
    """Print the files that are tried, in order, and which one is used."""
    invocation: Invocation = ctx.obj
    files = (invocation.config,) if invocation.config else candidate_files(invocation.environ)
    used = next((file for file in files if file.is_file()), None)
    rows = [("used" if file == used else "-", str(file)) for file in files]
    rows.append(("state", str(user_state_dir(invocation.environ))))
    body = {"files": [str(file) for file in files], "used": str(used) if used else None}
    names = (str(used),) if used else ()
    invocation.finish(Page("ConfigPath", body, columns(rows), names=names))


@app.command()
def view(ctx: typer.Context) -> None:
    """Print the settings in force."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    facts = {
        "context": settings.context,
        "scheduler": settings.scheduler,
        "inventory": " ".join(
            f"{k}={v}" for source in settings.inventory for k, v in source.items()
        ),
        "jobs": " ".join(map(str, settings.jobs)) or "-",
        "state_dir": str(settings.state_dir),
        "readonly": str(settings.readonly).lower(),
        "ssh.transport": settings.ssh.transport,
        "ssh.fanout": str(settings.ssh.fanout),
        "ssh.handshakes_per_jump": str(settings.ssh.handshakes_per_jump),
        "ssh.gateways": settings.ssh.gateways,
        "ssh.shards": str(settings.ssh.shards or "one for each CPU"),
        "ssh.known_hosts": str(settings.ssh.known_hosts or "-"),
        "guards": " ".join(map(str, settings.guard_files)) or "built in",
        "file": str(settings.config_file),
    }
    invocation.finish(Page("Config", {"settings": facts}, columns(list(facts.items()))))


@app.command()
def sudoers(
    ctx: typer.Context,
    user: Annotated[str, typer.Option("--user", help="login on nodes; default ssh.user")] = "",
) -> None:
    """Print sudoers lines that allow the login on nodes what checks need as root, and no more."""
    from brctl.engine.controller.security.sudoers import root_commands
    from brctl.engine.controller.security.sudoers import sudoers as lines_for
    from brctl.library.checks import load_checks
    from brctl.library.shipped import shipped_dir

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    folders = (shipped_dir("checks"), *(folder / "checks" for folder in settings.library_dirs))
    checks, login = load_checks(folders), user or settings.ssh.user or "brctl"
    text = lines_for(login, checks)
    commands = [
        {"command": list(command), "checks": list(names)}
        for command, names in root_commands(checks).items()
    ]
    body = {"user": login, "text": text, "commands": commands}
    invocation.finish(Page("Sudoers", body, text.rstrip()), settings.context)
