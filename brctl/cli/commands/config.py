"""`brctl config path|view`: where configuration comes from and what it says."""

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
