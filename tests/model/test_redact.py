"""Redaction, and the texts about errors that are stored."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.model.redact import MAX_TEXT, REDACTOR_FAILED, Redactor, clean, describe_error

PLAIN = Redactor()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hunter2hunter2"

SECRETS = [
    pytest.param("login failed: password=hunter2 for bob", "login failed: password=[redacted] for bob", id="equals"),
    pytest.param("Passwd: hunter2, user: bob", "Passwd: [redacted], user: bob", id="colon"),
    pytest.param('{"password": "hunter2", "a": 1}', '{"password": "[redacted]", "a": 1}', id="json"),
    pytest.param("{'api_key': 'hunter2', 'a': 1}", "{'api_key': '[redacted]', 'a': 1}", id="repr"),
    pytest.param('{"token":123,"user":"bob"}', '{"token":[redacted],"user":"bob"}', id="json-number"),
    pytest.param("token:123,hunter2 a", "token:[redacted] a", id="number-and-more"),
    pytest.param(r'{\"token\":\"hunter2\",\"a\":1}', r'{\"token\":\"[redacted]\",\"a\":1}', id="escaped-json"),
    pytest.param('"secrets": ["hunter2", {"a": "hunter2"}], "b": 1', '"secrets": [redacted], "b": 1', id="nested"),
    pytest.param('password="hun\\"hunter2" bob', 'password="[redacted]" bob', id="quote-in-quotes"),
    pytest.param('password = """hunter2 hunter2""" bob', 'password = """[redacted]""" bob', id="triple-quotes"),
    pytest.param("password='never closed hunter2", "password='[redacted]", id="open-quote"),
    pytest.param("secret: b'hunter2' bob", "secret: b'[redacted]' bob", id="bytes-repr"),
    pytest.param("password=a,hunter2&hunter2", "password=[redacted]", id="separators-inside"),
    pytest.param("Server=x;Pwd=hunter2;Database=y", "Server=x;Pwd=[redacted];Database=y", id="connection-string"),
    pytest.param("db_password_2=hunter2 clientSecret=hunter2", None, id="inside-a-longer-name"),
    pytest.param("os.environ['DB_SECRET'] = 'hunter2'", "os.environ['DB_SECRET'] = '[redacted]'", id="subscript"),
    pytest.param("access-key: hunter2\nprivate_key=x", "access-key: [redacted]\nprivate_key=[redacted]", id="keys"),
    pytest.param("token:\n  hunter2", "token:\n  [redacted]", id="next-line"),
    pytest.param("Authorization: Bearer hunter2", "Authorization: [redacted]", id="authorization"),
    pytest.param(
        "{'Authorization': 'Basic aHVudGVyMg==', 'X': 1}", "{'Authorization': '[redacted]', 'X': 1}", id="header-dict"
    ),
    pytest.param('proxy-authorization: Digest u="a", r="hunter2"', "proxy-authorization: [redacted]", id="digest"),
    pytest.param("Set-Cookie: a=hunter2; b=hunter2\nnext", "Set-Cookie: [redacted]\nnext", id="cookie"),
    pytest.param("sent bearer abcdefghunter2 to bob", "sent bearer [redacted] to bob", id="bearer"),
    pytest.param("sent Basic aHVudGVyMjpodW50ZXIy== on", "sent Basic [redacted] on", id="basic"),
    pytest.param("postgres://bob:hunter2@db/x failed", "postgres://[redacted]@db/x failed", id="url"),
    pytest.param("redis://:hunter2@db", "redis://[redacted]@db", id="url-without-user"),
    pytest.param("amqp://bob:p@hunter2@db", "amqp://[redacted]@db", id="url-with-at"),
    pytest.param("amqp://bob:p/hunter2@db", "amqp://[redacted]@db", id="url-with-slash"),
    pytest.param("GET /?a=1&access_token=hunter2&b=2", "GET /?a=1&access_token=[redacted]&b=2", id="query"),
    pytest.param("mysql --password hunter2 -h x", "mysql --password [redacted] -h x", id="flag"),
    pytest.param("['mysql', '--password', 'hunter2']", "['mysql', '--password', '[redacted]']", id="flag-in-list"),
    pytest.param("ALTER USER x PASSWORD 'hunter2'; go", "ALTER USER x PASSWORD '[redacted]'; go", id="sql"),
    pytest.param(
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nafter", "[redacted]\nafter", id="pem"
    ),
    pytest.param("x -----BEGIN PRIVATE KEY-----\nhunter2", "x [redacted]", id="pem-without-end"),
    pytest.param(f"got {JWT} back", "got [redacted] back", id="jwt"),
    pytest.param("AKIAIOSFODNN7EXAMPLE used", "[redacted] used", id="amazon"),
    pytest.param("ghp_" + "a1" * 18, "[redacted]", id="github"),
    pytest.param("glpat-hunter2hunter2hunter2", "[redacted]", id="gitlab"),
    pytest.param("xoxb-1234-5678-hunter2", "[redacted]", id="slack"),
    pytest.param("sk-ant-api03-hunter2hunter2", "[redacted]", id="model-vendor"),
]


@pytest.mark.parametrize(("text", "expected"), SECRETS)
def test_b26_redact_hides(text: str, expected: str | None) -> None:
    """The value goes, what is around it stays."""
    redacted = PLAIN.redact(text)

    assert "hunter2" not in redacted
    assert "[redacted]" in redacted
    assert expected in (None, redacted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no secrets here, honestly",
        "InvalidTokenError: Signature has expired",
        "Unexpected token '<' at 1",
        "http://localhost:8000/a@b",
        "user@example.org could not be reached",
        "https://example.org/path?page=2&size=5",
        "the password was wrong",
        "task sk-1 of 5, eyJ",
    ],
)
def test_redact_leaves_harmless_text(text: str) -> None:
    """A text without secrets comes back as it is."""
    assert PLAIN.redact(text) == text


FRAGMENTS = [
    *("password", "token", "auth", "Authorization", "cookie", "access key", "pass", "--", "bearer ", "Basic ", "Error"),
    *("=", ":", "=>", " ", "\n", "'", '"', '"""', "\\", '\\"', "b'", "[", "]", "{", "}", ",", ";", "&", "/", "@", "://"),
    *("abc", "1", "123", "null", "a=", "_", "-", ".", "[redacted]", JWT, "AKIAIOSFODNN7EXAMPLE", "sk-" + "a" * 20),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
def test_redact_is_idempotent(text: str) -> None:
    """A redacted text has nothing left to redact."""
    once = PLAIN.redact(text)

    assert PLAIN.redact(once) == once


@given(st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=30))
def test_b26_redact_hides_any_word(secret: str) -> None:
    """Whatever the secret is, it is not in what remains."""
    marked = f"zq{secret}zq"

    for template in ('{{"password": "{}"}}', "password={}", "--token {} x", "https://a:{}@h"):
        assert marked not in PLAIN.redact(template.format(marked))


@pytest.mark.parametrize(
    "unit",
    [
        *("a", "password", "password=", 'password="', "password='\\", 'secret=\\"', "secret={", "token ", "token=&"),
        *("token=,a", "access key", "pass=", "authorization:", "--", "://", "://a:", "://a:b", "://@", "a@", "eyJ"),
        *("eyJ-", "eyJa.", "bearer ", "Basic ", "-----BEGIN ", "-----BEGIN A PRIVATE KEY-----", "sk-", "AKIA"),
        *("SG." + "a" * 22, "\\", '"', "[{", " ", "\n", "&"),
    ],
)
def test_work_on_hostile_text_is_linear(unit: str) -> None:
    """A megabyte made to mislead the patterns takes seconds at most, where a quadratic one would take hours."""
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    started = time.process_time()

    clean(text, PLAIN)
    PLAIN.redact(text[:200_000])

    assert time.process_time() - started < 5


def test_b26_clean_redacts_before_it_cuts() -> None:
    """A secret that straddles the last character kept does not leave its first half."""
    for before in range(MAX_TEXT - 80, MAX_TEXT + 5):
        cleaned = clean("x" * before + f" password=hunter2 https://bob:hunter2@h {JWT}", PLAIN)

        assert "hunt" not in cleaned
        assert "eyJ" not in cleaned
        assert len(cleaned) <= MAX_TEXT


@pytest.mark.parametrize("secret", ["https://bob:" + "hunter2" * 9 + "@h/", "eyJ" + "hunter2" * 300 + ".aaaaaa.b"])
def test_b26_clean_hides_a_secret_cut_in_two_by_the_window(secret: str) -> None:
    """Where the look ends inside a secret, the half that was seen is not shown, even if all before it shrank."""
    for shift in range(1, len(secret), 5):
        long = "password='" + "y" * (20_000 - 12 - shift) + "' "
        cleaned = clean(long + secret + "x" * 10_000, PLAIN)

        assert "hunter2" not in cleaned


def test_clean_shows_the_beginning_of_a_long_text() -> None:
    """Ten megabytes give their first characters and a sign that more followed."""
    cleaned = clean("begin " + "x" * 10_000_000, PLAIN)

    assert cleaned == "begin " + "x" * (MAX_TEXT - 7) + "…"


@given(st.text(st.characters(), max_size=600))
def test_b25_clean_makes_any_text_storable(text: str) -> None:
    """Whatever the text holds, the result is valid UTF-8 without NUL, short, and stays as it is."""
    cleaned = clean(text, PLAIN)

    assert len(cleaned) <= MAX_TEXT
    assert "\0" not in cleaned.encode().decode()
    assert clean(cleaned, PLAIN) == cleaned


def test_b25_describe_error_is_short_and_storable() -> None:
    """NUL, a lone surrogate and a million characters become 500 storable ones."""
    described = describe_error(ValueError("a\0b \ud800 " + "x" * 10**6), PLAIN)

    assert described.startswith("ValueError: a\ufffdb \ufffd xxx")
    assert len(described) == MAX_TEXT
    assert described.encode()


class _Unreadable(Exception):
    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error("hunter2")


@pytest.mark.parametrize("error", [ValueError, RecursionError, SystemExit, KeyboardInterrupt])
def test_b25_describe_error_whose_text_cannot_be_read(error: type[BaseException]) -> None:
    """An exception whose str() raises is still described by its type."""
    assert describe_error(_Unreadable(error), PLAIN) == "_Unreadable: (its text cannot be read)"


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (ValueError(), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError("password=hunter2"), "ValueError: password=[redacted]"),
        (type("PasswordToken", (Exception,), {})("too short"), "PasswordToken: too short"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_describe_error_names_type_and_text(error: BaseException, described: str) -> None:
    """The type comes first, is never taken for the name of a secret, and stands alone where there is no text."""
    assert describe_error(error, PLAIN) == described


def test_b26_describe_error_leaves_out_the_cause() -> None:
    """What a chained exception says is not part of the description."""
    try:
        try:
            raise KeyError("hunter2")
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        described = describe_error(error, PLAIN)

    assert described == "ValueError: outer"


def test_the_hosts_redactor_adds_to_the_built_in_rules() -> None:
    """The host's function sees what the rules left, and its answer counts."""
    seen: list[str] = []

    def extra(text: str) -> str:
        seen.append(text)
        return text.replace("4711", "[customer]")

    assert clean("password=hunter2 of 4711", Redactor(extra)) == "password=[redacted] of [customer]"
    assert seen == ["password=[redacted] of 4711"]


def _raise(text: str) -> str:
    raise RuntimeError(text)


def _answer_nothing(_text: str) -> str:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize("extra", [_raise, _answer_nothing])
def test_b26_a_redactor_that_fails_stores_a_constant(extra: Callable[[str], str]) -> None:
    """Where the host's function fails nothing of the text is stored, long or short."""
    redactor = Redactor(extra)

    assert clean("hunter2", redactor) == REDACTOR_FAILED
    assert clean("hunter2 " * 10_000, redactor) == REDACTOR_FAILED
    assert describe_error(ValueError("hunter2"), redactor) == REDACTOR_FAILED


def test_what_the_hosts_redactor_answers_is_made_storable() -> None:
    """NUL, surrogates and length are seen to after the host's function, too."""
    cleaned = clean("x", Redactor(lambda _text: "\0\ud800" + "y" * 1_000))

    assert cleaned == "\ufffd\ufffd" + "y" * (MAX_TEXT - 3) + "…"
