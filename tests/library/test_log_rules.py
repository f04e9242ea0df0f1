"""A site's own rules are read strictly and take part in every classification."""

from pathlib import Path

import pytest

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.logs.rule_trial import try_lines, try_rule_file
from brctl.library.log_rules import load_log_rules, read_rule_file, signatures_with
from brctl.model.errors import ConfigError
from brctl.model.fault import Action, FaultClass, Origin

HEAD = "apiVersion: brctl.dev/v1\nkind: LogRules\nrules:\n"
RULE = """\
  - name: site.pfs-evicted
    contains: ["PFS client evicted"]
    pattern: 'evicted by (?P<host>\\S+)'
    class: storage-checkpoint
    probability: 0.95
    origin: infra
    why: our file system prints this when a client is cut off
    examples: ["pfs: PFS client evicted by oss-7"]
"""


def write(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "rules.d"
    folder.mkdir(exist_ok=True)
    path = folder / "site.yaml"
    path.write_text(HEAD + text)
    return path


def test_a_site_rule_decides_a_classification(tmp_path: Path) -> None:
    """Its class, side and culprit come out like those of a shipped rule; the tree says the rest."""
    write(tmp_path, RULE)
    classifier = Classifier(signatures_with(load_log_rules([tmp_path])))
    line = b"2026-07-05 03:00:00 pfs: PFS client evicted by oss-7\n"
    actual = classifier.classify_inputs([("log", Blocks([line]))]).overall
    assert (actual.fault, actual.origin) == (FaultClass.STORAGE_CHECKPOINT, Origin.INFRA)
    assert (actual.action, actual.culprit) == (Action.PAGE_STORAGE, "oss-7")


def test_a_rule_is_tried_on_its_own_examples(tmp_path: Path) -> None:
    """An example that does not match fails the trial."""
    good = write(tmp_path, RULE)
    assert [t.passed for t in try_rule_file(good)] == [True]
    bad = write(tmp_path, RULE.replace("evicted by oss-7", "evicted, reason unknown"))
    assert [t.passed for t in try_rule_file(bad)] == [False]


def test_a_trial_shows_which_rules_speak_on_each_line(tmp_path: Path) -> None:
    """An operator sees why a line counts, or that none of the rules knows it."""
    write(tmp_path, RULE)
    lines = tmp_path / "lines.txt"
    lines.write_text("pfs: PFS client evicted by x\nnothing to see\n")
    assert [t.names for t in try_lines(lines, [tmp_path])] == [("site.pfs-evicted",), ()]


def test_a_harmless_rule_silences_a_line(tmp_path: Path) -> None:
    """A site's known noise raises no alarm any more."""
    text = (
        '  - name: site.noise\n    contains: ["flaky probe"]\n    part: harmless\n    why: known\n'
    )
    write(tmp_path, text)
    classifier = Classifier(signatures_with(load_log_rules([tmp_path])))
    line = b"flaky probe says: CUDA error: uncorrectable ECC error encountered\n"
    actual = classifier.classify_inputs([("log", Blocks([line]))]).overall
    assert actual.fault is FaultClass.NO_FAULT


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("class: storage-checkpoint", "class: storage"), "unknown 'storage'"),
        (("why: our", "whi: our"), "unknown key 'whi'"),
        (("probability: 0.95", "probability: 7"), "between 0 and 1"),
        (("'evicted by (?P<host>\\S+)'", "'evicted ('"), "not a regular expression"),
        (('["PFS client evicted"]', '["ab"]'), "at least 3 characters"),
        (("name: site.pfs-evicted", "name: nccl.shm"), "shipped rule's name"),
        (("name: site.pfs-evicted", "name: Site Rule"), "lower-case words"),
        (("    class", "    part: victim\n    class"), "only a rule with `part: root`"),
        (("    origin", "    action: swap\n    origin"), "only the decision tree says what to do"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    """File, line and the nearest thing meant."""
    path = write(tmp_path, RULE.replace(*change))
    with pytest.raises(ConfigError, match=r"site\.yaml:\d+: .*") as caught:
        read_rule_file(path)
    assert problem in str(caught.value)
