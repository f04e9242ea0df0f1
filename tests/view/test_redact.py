"""Secrets are taken out of what is kept, in time that grows with the text and no faster."""

import base64
import json
import time
from dataclasses import replace

import pytest

from brctl.view.redact import HIDDEN, Redactor, redact, redact_document
from brctl.view.redact_rules import RULES, SecretShape
from tests.view.planted_secrets import FORMS, PLANTED, opened

_B64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
_JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
# Put together here, so that no scanner of repositories takes the samples for real ones.
_SLACK = "https://hooks.slack.com/services/" + "T00000000/B00000000/" + "X" * 24

SECRETS = {
    "JSON web token": (f"got {_JWT} back", "dozjgNryP4J3"),
    "temporary AWS key": ("key ASIA" + "QWERTYUIOPASDFGH end", "QWERTYUIOP"),
    "netrc": ("machine h.example.com login me password hunter2", "hunter2"),
    "netrc on lines": ("machine h\n  login me\n  password hunter2\n", "hunter2"),
    "quoted Authorization": ('{"Authorization": "Bearer abcdef123"}', "abcdef123"),
    "Authorization without a scheme": ("authorization: s3cr3tvalue", "s3cr3tvalue"),
    "digest Authorization": (
        'Authorization: Digest username="me", response="6629fae4"',
        "6629fae4",
    ),
    "bare bearer": ("sent bearer abcdef123456", "abcdef123456"),
    "cookie": ("Cookie: session=abc123; theme=dark", "abc123"),
    "set-cookie": ("set-cookie: sid=xyz789; Path=/", "xyz789"),
    "token in a URL": ("GET https://h/x?a=1&access_token=abc123&b=2", "abc123"),
    "signature in a URL": ("https://s3/x?X-Amz-Signature=deadbeef12&x=1", "deadbeef12"),
    "key in a URL": ("https://maps/x?key=Zm9vYmFy", "Zm9vYmFy"),
    "token as a URL's user": ("https://0123456789abcdef0123@github.com/x.git", "0123456789abcdef"),
    "password of nobody in a URL": ("redis://:hunter2@h:6379/0", "hunter2"),
    "chat web hook": (_SLACK, "X" * 24),
    "chat web hook of another make": ("https://discord.com/api/webhooks/123/abcDEF", "abcDEF"),
    "chat bot": ("https://api.telegram.org/bot123:abcDEF/sendMessage", "abcDEF"),
    "name and value": ('{"name": "DB_PASSWORD", "value": "hunter2"}', "hunter2"),
    "name and value in YAML": ("- name: DB_PASSWORD\n  value: hunter2\n", "hunter2"),
    "escaped JSON": ('{\\"password\\": \\"hunter2\\"}', "hunter2"),
    "quoted with blanks": ('password: "correct horse battery"', "horse"),
    "key by lines": (f"[rank0] {_B64}", _B64),
    "key without an end": ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz", "b3BlbnNz"),
    "fine-grained GitHub token": ("github_pat_" + "a1B2" * 8, "a1B2a1B2"),
    "Google key": ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "SyA12345"),
    "model provider's key": ("sk-proj-" + "abcdefghij1234567890", "abcdefghij"),
    "option": ("--db-password hunter2 --steps 3", "hunter2"),
    "sshpass": ("sshpass -p hunter2 ssh h", "hunter2"),
    "curl": ("curl -s -u me:hunter2 https://h", "hunter2"),
    "account key": ("AccountName=x;AccountKey=abc123==;", "abc123"),
    "value after empty lines": ("password:\n\n  hunter2x\n", "hunter2x"),
    "name, sign and value on lines of their own": ("password\n:\n\nhunter2x\n", "hunter2x"),
    "MySQL": ("MYSQL_PWD=hunter2", "hunter2"),
}

HARMLESS = [
    "sha256 " + "0a1b2c3d" * 8,
    "/home/Users1/" + "some/path/" * 10,
    "tokens per second: 51234, tokens=7, tokenizer: bpe",
    "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered",
    "PWD=/home/me HOME=/home/me",
    "ssh://git@github.com/x.git",
    "https://example.com/a:b@c and user@host:22",
    "https://grafana/d/x?orgId=1&from=now-1h&var-node=n1",
    "iteration 100/500 | lm loss: 1.2E+00 | grad norm: 3.1",
    "secretary met the bearer of news",
    "machine n1 login node",
    "GPU-5f3c1d2e-0a1b-4c3d-8e9f-0123456789ab",
    " _Z9kSFSWriteP15KernelOperationP9MMFSVInfoP10ext_cred_t+0x158a/0x56b0 [mmfs26]",
    "  portSyncRwLockAcquireWrite+0x16/0x2c0 [nvidia]",
    "at::native::vectorized_elementwise_kernel<4, FillFunctor<long>, std::array<char*, 1ul> >",
    "forward_pass: 0.31 backward_pass=0.62 per_token_loss: 3.15 val_token_acc=0.4",
    "KeyError: 'layers.0.key' missing keys in state_dict: cache_key, primary_key",
    "token is not valid, secret was rejected",
    "50%|#####     | 5/10 [00:05<00:05, 1.0it/s]",
]

SLOW_BEFORE = [
    "a", "eyJ", "eyJ-", "password", "--", "--a-", 'password="', "://", "://a:", "machine a login ",
    "authorization: ", "cookie", "curl ", "name: password ", "A1b/", "-----BEGIN ", " ", "\n", "'",
    "_", "bearer ", "SG.a", "=",
]  # fmt: skip


@pytest.mark.parametrize("shape", sorted(SECRETS))
def test_every_shape_of_secret_is_taken_out(shape: str) -> None:
    """By itself, and in the middle of a long text."""
    text, secret = SECRETS[shape]
    for whole in (text, f"before\n{text}\nafter"):
        assert secret not in redact(whole)
        assert HIDDEN in redact(whole)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_planted_secret_is_found_however_it_is_packed(form: str) -> None:
    """Nothing of it can be read any more, unpacked as often as one likes."""
    for shape, (text, secret) in PLANTED.items():
        redactor = Redactor()
        found = redactor.document(FORMS[form](text))
        left = [view for view in opened(str(found)) if secret in view]
        assert not left, shape
        assert redactor.taken.total() > 0


@pytest.mark.parametrize(
    ("document", "clean"),
    [
        (["t.py", "--db-password", "hunter2", "--steps", "5"],
         ["t.py", "--db-password", HIDDEN, "--steps", "5"]),
        (["--use-token", "--steps", "5"], ["--use-token", "--steps", "5"]),
        (["--tokens", "5", "password"], ["--tokens", "5", "password"]),
        ({"passwords": ["a1", ["b2"], ""]}, {"passwords": [HIDDEN, [HIDDEN], ""]}),
        ({"tokens": ["a", "b"]}, {"tokens": ["a", "b"]}),
        ({"secrets": [{"name": "db"}, None]}, {"secrets": [{"name": "db"}, None]}),
    ],
)  # fmt: skip
def test_of_a_list_what_an_option_or_a_key_calls_a_secret_is_taken_out(
    document: object, clean: object
) -> None:
    """The list stays one, so that what it stands in still can be read."""
    assert redact_document(document) == clean


def test_a_known_secret_is_found_by_its_value_in_any_packing() -> None:
    """No shape gives away what only the configuration knows."""
    for pack in FORMS.values():
        redactor = Redactor(values=("blue parrot",))
        found = redactor.text(pack("hello from blue parrot and others"))
        assert not any("blue parrot" in view for view in opened(found))
        assert redactor.taken["known"] > 0


def test_a_document_in_a_text_stays_a_document() -> None:
    """What a probe printed is JSON in JSON: without the secret it still can be read."""
    inner = json.dumps({"name": "x", "value": 'WANDB_API_KEY="abc" then "more"'})
    found = redact_document(json.dumps({"stdout": inner, "exit": 0}))
    value = json.loads(json.loads(str(found))["stdout"])["value"]
    assert value == f'WANDB_API_KEY={HIDDEN} then "more"'


def test_what_is_taken_out_is_counted_once_and_not_again() -> None:
    """A report counts secrets, and a copy of a copy holds none."""
    redactor = Redactor()
    once = redactor.text("password=abc Authorization: Bearer abcdefgh1 redis://:pw@h/0")
    assert dict(redactor.taken) == {"named": 1, "header": 1, "URL": 1}
    again = Redactor()
    assert again.text(once) == once
    assert again.taken.total() == 0


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    """Digests, paths, names and numbers are what evidence is made of."""
    assert redact(text) == text


@pytest.mark.parametrize("part", SLOW_BEFORE)
def test_ten_times_the_text_takes_about_ten_times_the_time(part: str) -> None:
    """A node chooses the text: quadratic patterns held up a cordon for a minute."""
    small, large = (_seconds(part, size) for size in (20_000, 200_000))
    assert large < 40 * small + 0.05
    assert large < 5.0


def _seconds(part: str, size: int) -> float:
    """CPU time of the quicker of two tries."""
    text = (part * (size // len(part) + 1))[:size]
    times = []
    for _ in range(2):
        began = time.process_time()
        redact(text)
        times.append(time.process_time() - began)
    return min(times)


def test_a_text_beyond_the_limit_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not looked through is not kept."""
    monkeypatch.setattr("brctl.view.redact.LIMIT", 4096)
    found = redact("x" * 4096 + "password=hunter2")
    assert "hunter2" not in found
    assert "16 characters more were not kept" in found


def test_a_document_hides_what_its_keys_name() -> None:
    """Where name and value are apart, no pattern over one text can see them together."""
    document = {
        "DB_PASSWORD": "hunter2",
        "env": [{"name": "API_TOKEN", "value": "abc"}, {"name": "RANK", "value": "3"}],
        "tokens": 7,
        "secret": "",
        "note": "password=hunter2",
        "pin_password": 12345678,
        "has_secret": True,
        "token": None,
    }
    assert redact_document(document) == {
        "DB_PASSWORD": HIDDEN,
        "env": [{"name": "API_TOKEN", "value": HIDDEN}, {"name": "RANK", "value": "3"}],
        "tokens": 7,
        "secret": "",
        "note": f"password={HIDDEN}",
        "pin_password": HIDDEN,
        "has_secret": True,
        "token": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"db_password": 12345678, "a": 1}',
        '{"api_key": 12345678, "api_key": ""}',
        '{"a": {"api_key": "12345678", "api_key": ""}}',
    ],
)
def test_a_document_in_a_text_hides_no_less_than_the_text(text: str) -> None:
    """A number is a secret too, and so is the first of two values of one key."""
    assert "12345678" not in str(redact_document(text))


def test_short_packed_words_without_a_hint_are_not_searched_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every rule ran again for each of millions of words."""
    searched: list[str] = []
    shape = replace(RULES[0], name="seen", hints=("%41",))
    monkeypatch.setattr(SecretShape, "replace", lambda _shape, _take, text: _noted(searched, text))
    monkeypatch.setattr("brctl.view.redact.RULES", (shape,))
    text = "%41%42 " * 100
    assert redact(text) == text
    assert searched == [text]


def _noted(searched: list[str], text: str) -> str:
    searched.append(text)
    return text


def test_more_packed_words_than_there_is_time_for_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """16 MiB of them took 40 s; those that are kept were looked through."""
    monkeypatch.setattr("brctl.view.redact.PACKED_WORDS", 3)
    words = [base64.b64encode(f"harmless word {n:04}".encode()).decode() for n in range(5)]
    redactor = Redactor()
    gone = base64.b64encode(HIDDEN.encode()).decode()
    assert redactor.text(" ".join(words)) == " ".join([*words[:3], gone, gone])
    assert redactor.taken["packed word"] == 2
    assert redactor.text(words[4]) == words[4]


def test_what_was_found_harmless_once_is_still_searched_for_in_other_texts() -> None:
    """Keys and values come again for every node; only equal texts are taken for equal."""
    redactor = Redactor(values=("greenparrot",))
    assert redactor.text("host.clock") == redactor.text("host.clock")
    assert redactor.text("host.clock greenparrot") == f"host.clock {HIDDEN}"
    assert redactor.text("greenparrot") == HIDDEN
