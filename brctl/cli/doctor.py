"""`brctl doctor`: can this controller work at all, and what is in the way."""

import typer

from brctl.cli.invocation import Invocation, new_app

app = new_app()


@app.command()
def doctor(ctx: typer.Context) -> None:
    """Check configuration, SSH set-up, tools and permissions of this controller."""
    from brctl.engine.doctor import examine
    from brctl.view.doctor import doctor_page

    invocation: Invocation = ctx.obj
    findings = examine(invocation.environ, invocation.context, invocation.config)
    invocation.finish(doctor_page(findings), invocation.context or "")
