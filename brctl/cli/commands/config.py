"""`brctl config init|path|view|sudoers`: a first configuration; where it is, says and needs."""

from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.library.config import candidate_files, user_state_dir
from brctl.view.documents import node_set
from brctl.view.notices.page import Page
from brctl.view.text import columns

app = new_app()


@app.command()
def init(
    ctx: typer.Context,
    hosts: Annotated[Path | None, typer.Option("--hosts", help="file, a node a line")] = None,
    ssh_config: Annotated[
        Path | None, typer.Option("--ssh-config", help="its hosts without wildcards")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="hosts of --ssh-config, 'gpu*'")
    ] = None,
    ansible: Annotated[Path | None, typer.Option("--ansible", help="an Ansible inventory")] = None,
    slurm: Annotated[str | None, typer.Option("--slurm", help="partitions, or all")] = None,
    k8s: Annotated[str | None, typer.Option("--k8s", help="a kubeconfig context")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="of its jobs")] = None,
    name: Annotated[str, typer.Option("--name", help="name of the context")] = "main",
    user: Annotated[str | None, typer.Option("--user", help="login name")] = None,
    identity: Annotated[Path | None, typer.Option("--identity", help="private key")] = None,
    known_hosts: Annotated[Path | None, typer.Option("--known-hosts", help="host keys")] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=0, max=1024, help="of each node")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="the old one becomes .old")] = False,
) -> None:
    """Write a private configuration from a list of nodes (`-w` or a flag); it is tried first."""
    from brctl.engine.application.config_init import InitRequest, init_config
    from brctl.model.nodeset import fold

    invocation: Invocation = ctx.obj
    target = invocation.config or candidate_files(invocation.environ)[0]
    request = InitRequest(
        name, invocation.nodes, hosts, ssh_config, tuple(only or ("*",)), ansible, slurm, k8s,
        namespace, user, identity, known_hosts, gpus, force,
    )  # fmt: skip
    done = init_config(invocation.environ, target, request)
    lines = [f"{len(done.nodes)} nodes: {fold(done.nodes)}", *(f"wrote {f}" for f in done.files)]
    if not done.gpus_known:
        invocation.note(
            "how many GPUs nodes have is not said; until then sweeps say UNKNOWN: --gpus N"
        )
    body = {
        "context": done.context,
        "files": [str(file) for file in done.files],
        **node_set(done.nodes),
    }
    steps = ("brctl inventory trust -w @all", "brctl sweep")
    page = Page("ConfigInit", body, "\n".join(lines), names=done.nodes, next=steps)
    invocation.finish(page, done.context)


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
    from brctl.library.checks import site_checks

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    checks, login = site_checks(settings.library_dirs), user or settings.ssh.user or "brctl"
    text = lines_for(login, checks)
    commands = [
        {"command": list(command), "checks": list(names)}
        for command, names in root_commands(checks).items()
    ]
    body = {"user": login, "text": text, "commands": commands}
    invocation.finish(Page("Sudoers", body, text.rstrip()), settings.context)
