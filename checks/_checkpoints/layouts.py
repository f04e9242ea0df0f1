"""RUNS ON THE NODE. How frameworks lay out checkpoints, a row each; the saves in a directory."""

import os
import re

from checks._checkpoints import (
    deepspeed,
    hf_trainer,
    lightning,
    megatron,
    torch_dcp,
    torch_save,
)
from checks._checkpoints.contents import step_inside

LAYOUTS = {
    "torch-dcp": torch_dcp,
    "megatron": megatron,
    "deepspeed": deepspeed,
    "lightning": lightning,
    "hf-trainer": hf_trainer,
    "torch-save": torch_save,
}
"""A row reads one checkpoint (`inspect`) and names what is written last (`end`).

A layout with a file that names the newest one has its name (`POINTER`) and its reader (`pointed`).
"""

POINTER_LIMIT = 4096


class Save(object):
    """One checkpoint in the directory: a file or folder whose name or content tells its step."""

    def __init__(self, root, name, step):
        self.root, self.name, self.step = root, name, step
        self.path = os.path.join(root, name)


class Saves(object):
    """All checkpoints of a directory, oldest first.

    `stepless` are names that fit and whose step could not be read, with the reason.
    `told` is what was read of their loaders, so that each is read once.
    `pointer` is the name in the layout's own file of the newest; None without one.
    """

    def __init__(self, root, layout, pattern, world_size=0, model_parallel=0):
        self.layout = LAYOUTS[layout]
        self.world_size, self.model_parallel = world_size, model_parallel
        self.stepless, self.links, self.listed, self.told = [], [], [], {}
        for name in os.listdir(root):
            match = pattern.match(name)
            if match:
                self._add(root, name, match)
        self.listed.sort(key=lambda save: (save.step, save.name))
        self.pointer, self.pointer_file = self._read_pointer(root)

    def _add(self, root, name, match):
        text, path = match.groupdict().get("step"), os.path.join(root, name)
        if os.path.islink(path) and not (text and os.path.isdir(path)):
            self.links.append(name)
            return
        try:
            step = int(text) if text else step_inside(os.path.join(root, name))
        except Exception as exc:
            self.stepless.append("%s: %s" % (name, exc))
            return
        self.listed.append(Save(root, name, step))

    def _read_pointer(self, root):
        """What the layout's own file names, and that file; a link called last is one as well."""
        file = getattr(self.layout, "POINTER", None)
        try:
            if file is not None:
                with open(os.path.join(root, file), "rb") as stream:
                    text = stream.read(POINTER_LIMIT).decode("utf-8", "replace")
                return self.layout.pointed(text, self.names()), file
            for name in sorted(self.links):
                return os.path.basename(os.readlink(os.path.join(root, name))), name
        except FileNotFoundError:
            pass
        return None, file

    def names(self):
        return [save.name for save in self.listed]

    def others(self, save):
        return [other for other in self.listed[-9:] if other is not save]

    def pointed(self):
        """The save that the pointer names, if it is here."""
        return next((save for save in self.listed if save.name == self.pointer), None)

    def has_end(self, save):
        """Whether what is written last is there; whether it is whole nobody looked."""
        return os.path.exists(self.layout.end(save)) and not self.is_ahead(save)

    def is_ahead(self, save):
        """Whether it is newer than what the layout's own file names."""
        pointed = self.pointed()
        return pointed is not None and self.layout_points() and save.step > pointed.step

    def inspect(self, save, verify):
        """What one of them holds; one newer than what the pointer names was not finished."""
        found = self.layout.inspect(save, verify, self)
        if self.is_ahead(save):
            found.unfinished = "%s still names %s" % (self.pointer_file, self.pointer)
        return found

    def layout_points(self):
        return hasattr(self.layout, "POINTER")

    def may_be_in_writing(self, save):
        """Whether it is the newest of a layout that marks no end: a cut one may not be done yet."""
        marks_end = self.layout_points() and self.pointed() is not None
        marks_end = marks_end or self.layout in (torch_dcp, hf_trainer)
        return save is self.listed[-1] and not marks_end

    def pointer_problem(self):
        """Why the pointer leads nowhere; "" when it does, or there is none."""
        if self.pointer is None or self.pointed() is not None:
            return ""
        named = self.pointer[:100]
        return "%s names %s, which is not here" % (self.pointer_file, named or "nothing")


def names_of(parameters):
    """The pattern of the names of a job's checkpoints, as the controller has it."""
    return re.compile(r"(?:%s)\Z" % parameters["names"])


def saves_of(parameters):
    """The saves of the job that a probe was told of."""
    return Saves(
        parameters["checkpoint_dir"],
        parameters.get("layout") or "torch-dcp",
        names_of(parameters),
        int(parameters.get("world_size") or 0),
        int(parameters.get("model_parallel") or 0),
    )
