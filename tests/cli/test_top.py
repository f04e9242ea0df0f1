"""`brctl top`: one look for a pipe, look after look until Ctrl-C, and the last one's exit code."""

import io
import json
import sys
from pathlib import Path

import pytest

from brctl.cli.main import run
from tests.fakes.local_job import site


class Interrupting(io.StringIO):
    """A pipe whose reader presses Ctrl-C when the second look comes."""

    looks = 0

    def write(self, text: str) -> int:
        self.looks += text.startswith("--- ")
        if self.looks == 2:
            raise KeyboardInterrupt
        return super().write(text)


def config(folder: Path) -> str:
    return str(site(folder).config_file)


def test_one_look_is_a_document_and_its_state_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rank's file is read, its process is not known: nobody can say that it is well."""
    code = run(["--config", config(tmp_path), "top", "--once", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert code == document["exit_code"] == 3
    assert document["kind"] == "JobTop"
    assert document["ranks"][0]["step"] == 40
    assert document["nodes"][0]["temperature_c"] is None


def test_look_follows_look_until_somebody_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = Interrupting()
    monkeypatch.setattr(sys, "stdout", pipe)
    code = run(["--config", config(tmp_path), "top", "llm", "--every", "0.5s"])
    assert code == 3
    assert pipe.getvalue().startswith("--- ")
    assert "brctl top llm  every 0.5 s\nllm  UNKNOWN: step 40" in pipe.getvalue()
    assert "not measured on n1: gpu.clocks" in pipe.getvalue()


@pytest.mark.parametrize("words", [("nosuch",), ("--every", "1ms"), ("--rows", "0"), ("-w", "n1")])
def test_what_cannot_be_meant_is_refused_before_a_node_is_asked(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--config", config(tmp_path), "top", *words]) == 64
    assert capsys.readouterr().out == ""
