"""RUNS ON THE NODE. A folder of torch.distributed.checkpoint; `.metadata` is written last.

The metadata is a pickle written by the job; it is read with stubs for every class, so that none of
its code runs.
"""

import os
import pickle

from checks._checkpoints.contents import Contents, is_intact, size_of

METADATA_LIMIT = 256 << 20


class Stub(object):
    """Stands for every object of a pickle: keeps what it was given, does nothing."""

    def __init__(self, *arguments, **named):
        self.arguments = arguments

    def __setstate__(self, state):
        self.state = state

    def __call__(self, *arguments):
        return Stub(*arguments)

    def __hash__(self):
        return id(self)

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __setitem__(self, key, value):
        pass


class MetadataIndex(Stub):
    """One item of the checkpoint: a key of storage_data, so it must be hashable by content."""

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {})


class StorageInfo(Stub):
    """Where an item lies: file, offset, length."""

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {})


class Metadata(Stub):
    """The root object."""

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {})


KNOWN = {
    ("torch.distributed.checkpoint.metadata", "Metadata"): Metadata,
    ("torch.distributed.checkpoint.metadata", "MetadataIndex"): MetadataIndex,
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): StorageInfo,
}


# Plain pickles of enumerations and sets name these; as stubs they do nothing.
INERT = {("builtins", name) for name in ("getattr", "set", "frozenset", "slice", "object")}


class InertUnpickler(pickle.Unpickler):
    """Gives stubs for every class and function; nothing the pickle names is ever imported."""

    def find_class(self, module, name):
        if (module, name) in KNOWN:
            return KNOWN[module, name]
        if (module, name) in (("collections", "OrderedDict"), ("builtins", "dict")):
            return dict
        if (module, name) in INERT:
            return Stub
        if module in ("builtins", "__builtin__", "os", "posix", "subprocess", "sys", "nt"):
            raise pickle.UnpicklingError("the metadata names %s.%s" % (module, name))
        return Stub

    def persistent_load(self, pid):
        return Stub()


def read_parts(folder):
    """[(item, file, offset, length)] of everything the metadata says is stored."""
    path = os.path.join(folder, ".metadata")
    if os.path.getsize(path) > METADATA_LIMIT:
        raise ValueError("%s is larger than %d MiB" % (path, METADATA_LIMIT >> 20))
    with open(path, "rb") as stream:
        metadata = InertUnpickler(stream).load()
    stored = getattr(metadata, "storage_data", None)
    if not isinstance(metadata, Metadata) or not isinstance(stored, dict):
        raise TypeError("%s is no checkpoint metadata" % path)
    return [read_part(index, info) for index, info in stored.items()]


def read_part(index, info):
    """One stored item; anything but plain text and numbers is refused, not converted."""
    item = getattr(index, "fqn", None)
    name, place = getattr(info, "relative_path", None), getattr(info, "offset", None)
    length = getattr(info, "length", None)
    if not (type(item) is type(name) is str and type(place) is type(length) is int):
        raise TypeError("an item of the metadata has no name, file, offset or length")
    return item[:300], name, place, length


def inspect(save, verify, saves=None):
    """What is missing, short or damaged in one checkpoint directory."""
    return inspect_folder(save.path, verify)


def inspect_folder(folder, verify):
    found = Contents(folder, verify)
    if not os.path.exists(os.path.join(folder, ".metadata")):
        found.unfinished = "no .metadata: it was not finished"
        return found
    try:
        parts = read_parts(folder)
    except Exception as exc:
        raise ValueError("metadata: %s" % exc) from exc
    sizes, missing, short = {}, set(), set()
    found.checksums = verify
    for item, name, offset, length in parts:
        if os.path.basename(name) != name or offset < 0 or length < 0:
            raise ValueError("metadata: a part lies outside the checkpoint: %r" % name[:100])
        if name not in sizes:
            sizes[name] = size_of(os.path.join(folder, name))
        if sizes[name] is None:
            missing.add(name)
        elif offset + length > sizes[name]:
            short.add(name)
        elif verify and not is_intact(os.path.join(folder, name), offset, length):
            found.bad.append(item)
    found.missing, found.short = sorted(missing), sorted(short)
    found.bytes = sum(size or 0 for size in sizes.values())
    return found


def end(save):
    """The file that is written last."""
    return os.path.join(save.path, ".metadata")
