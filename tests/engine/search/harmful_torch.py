"""A node whose torch does harm in one collective, as a bad NIC or library would."""

import sys
from pathlib import Path

# Only the worker imports torch: an interpreter that loads it for every order costs seconds each
# time, and the node would be taken for one that hangs.
_INTERPRETER = """\
#!{python}
import builtins, os, sys, time
honest_import = builtins.__import__
def import_and_harm(name, *rest, **named):
    module = honest_import(name, *rest, **named)
    dist = sys.modules.get("torch.distributed")
    if getattr(dist, "{collective}", None) is not None:
        builtins.__import__ = honest_import
        honest = dist.{collective}
        def harmful(tensor, *rest, **named):
            done = honest(tensor, *rest, **named)
            if os.environ.get("GLOO_SOCKET_IFNAME", "lo") != "lo":
                {harm}
            return done
        dist.{collective} = harmful
    return module
builtins.__import__ = import_and_harm
boot = sys.argv[sys.argv.index("-c") + 1]
exec(compile(boot, "boot", "exec"), {{"__name__": "__main__"}})
"""


def write_interpreter(path: Path, collective: str, harm: str) -> Path:
    """An executable for `torch_python`; `harm` sees `tensor`, and only between nodes."""
    text = _INTERPRETER.format(python=sys.executable, collective=collective, harm=harm)
    path.write_text(text)
    path.chmod(0o755)
    return path
