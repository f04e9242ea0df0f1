"""`brctl logs`: classify training and system logs; list and test the rules that do it."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.progress import progress
from brctl.evidence.logs.signature import Signature
from brctl.model.errors import ConfigError, UsageError
from brctl.model.fault import FaultClass

app = new_app()
rules_app = new_app()
app.add_typer(rules_app, name="rules", help="list the rules, or test lines and site rules")


@app.callback()
def logs() -> None:
    """What the job's own words say went wrong, and who said it first."""


@app.command()
def classify(
    ctx: typer.Context,
    paths: Annotated[list[str] | None, typer.Argument(metavar="FILE|DIR|-", help="logs")] = None,
    job: Annotated[str | None, typer.Option("--job", help="fetch the job's logs")] = None,
) -> None:
    """Classify logs, plain or compressed; several files are judged together as one story."""
    from brctl.engine.logs.classify import Classifier
    from brctl.view.logs.classification import classification_page

    invocation: Invocation = ctx.obj
    if bool(paths) == bool(job):
        raise UsageError("give files, a directory or -; or --job J", hint="brctl logs classify DIR")
    if "" in (paths or ()):
        # As a path it would be the current directory.
        raise UsageError("'': no file or directory; is a variable of the shell empty?")
    signatures = _signatures(invocation)
    if paths:
        with progress("listing files", quiet=invocation.quiet) as line:
            classifier = Classifier(signatures, on_input=lambda name: line.tell(f"reading {name}"))
            result = classifier.classify_paths(Path(path) for path in paths)
        invocation.finish(classification_page(result))
    _classify_job(invocation, job)


@app.command()
def teach(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="one log whose cause you know")],
    fault: Annotated[str, typer.Option("--class", metavar="CLASS", help="its fault class")],
    line: Annotated[int | None, typer.Option("--line", help="the line that shows it")] = None,
) -> None:
    """Learn a log of this site: its telling line becomes a rule for classify and dx."""
    from brctl.engine.controller.clock import now
    from brctl.engine.logs.teaching import teach as learn
    from brctl.view.logs.lessons import lesson_page

    invocation: Invocation = ctx.obj
    directory = _directories(invocation)[-1]
    lesson = learn(
        Path(file), _fault(fault), _signatures(invocation), directory, now().date(), line
    )
    invocation.finish(lesson_page(lesson))


@app.command()
def explain(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="one log")],
) -> None:
    """Show a log's most unusual lines, and the known ones each is like."""
    from brctl.engine.logs.teaching import explain as look
    from brctl.view.logs.lessons import explanation_page

    invocation: Invocation = ctx.obj
    invocation.finish(explanation_page(look(Path(file), _signatures(invocation))))


def _fault(name: str) -> FaultClass:
    try:
        fault = FaultClass(name)
    except ValueError:
        fault = FaultClass.UNKNOWN
    if fault in (FaultClass.UNKNOWN, FaultClass.NO_FAULT):
        known = "see `brctl help classes`"
        raise UsageError(f"--class {name}: not a class that a log can be taught as", hint=known)
    return fault


def _classify_job(invocation: Invocation, name: str | None) -> None:
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.job.rank_logs import classify_job
    from brctl.view.logs.classification import classification_page

    settings = invocation.settings()

    async def run() -> None:
        with progress("fetching and reading the ranks' logs", quiet=invocation.quiet):
            async with open_controller(settings) as controller:
                job = controller.job(name)
                result = await classify_job(controller, job, _signatures(invocation))
        invocation.finish(classification_page(result), settings.context)

    asyncio.run(run())


@rules_app.command("list")
def list_rules(ctx: typer.Context) -> None:
    """List every rule with its class, strength and source; the site's own come first."""
    from brctl.view.logs.rules import rules_page

    invocation: Invocation = ctx.obj
    invocation.finish(rules_page(_signatures(invocation)))


@rules_app.command("test")
def test_rules(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="lines, or a LogRules YAML")],
) -> None:
    """Show which rules speak on each line of a file, or try a rule file on its own examples."""
    from brctl.engine.logs.rule_trial import try_lines, try_rule_file
    from brctl.view.logs.rules import trial_page

    invocation: Invocation = ctx.obj
    path = Path(file)
    if path.suffix in (".yaml", ".yml"):
        invocation.finish(trial_page(try_rule_file(path), wanted=True))
    invocation.finish(trial_page(try_lines(path, _directories(invocation)), wanted=False))


def _directories(invocation: Invocation) -> tuple[Path, ...]:
    """Where site rules may stand; a missing configuration is no obstacle to reading a log."""
    from brctl.library.config import user_config_dir

    try:
        return invocation.settings().library_dirs
    except ConfigError:
        if invocation.config or invocation.context:
            raise
        return (Path("/etc/brctl"), user_config_dir(invocation.environ))


def _signatures(invocation: Invocation) -> tuple[Signature, ...]:
    from brctl.library.log_rules import load_log_rules, signatures_with

    return signatures_with(load_log_rules(_directories(invocation)))
