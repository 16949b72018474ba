"""Redaction: secrets leave every text before it is stored, logged or published.

The built-in rules know the usual shapes; a host adds its own function. It is better to hide a harmless word than to
show a secret, so where a rule has to guess, it hides more. Each pattern runs in time linear in the text: nothing
unbounded is tried again from each position.
"""

import re
from collections.abc import Callable, Iterable

from jobq.model.secret_values import MARK, hide_values

#: No text about an error, a deferral or a reason is longer than this, in characters.
MAX_TEXT = 500
#: What is stored where a host's redactor raised, instead of a text that may hold a secret.
REDACTOR_FAILED = "[redacted: the redactor failed]"

_NO_TEXT = "(its text cannot be read)"
#: Work is bounded: of longer texts only the beginning is looked at.
WINDOW = 20_000
#: A secret that the end of the window cut in two may go unrecognised; no rule needs to see more of it than this.
_MARGIN = 5_000

#: Each pass is linear; a text that still changes after so many was made to.
_MAX_PASSES = 6

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_RULES = (
    # user:password@ in a URL; the second also takes a raw slash in the password, unless the part looks like a port.
    (re.compile(r"""(?<=://)[^\s"'<>/?\#]{1,256}(?=@)""", re.VERBOSE), MARK),
    (re.compile(r"""(?<=://)[^\s"'<>/:@]{0,64}:(?!\d{1,5}[/?\#])[^\s"'<>@]{1,128}(?=@)""", re.VERBOSE), MARK),
    (re.compile(r"\b(bearer\s{1,8})[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1{MARK}"),
    (re.compile(r"\b((?i:basic)\s{1,8})(?=[a-z]{0,64}[A-Z0-9])[A-Za-z0-9+/]{12,}={0,2}"), rf"\1{MARK}"),
    (re.compile(r"(?<![\w-])eyJ[\w-]{5,4096}\.[\w-]{5,}(?:\.[\w-]*)?"), MARK),  # JSON Web Token
    (
        re.compile(
            r"""(?<![A-Za-z0-9])(?:
                (?:AKIA|ASIA)[0-9A-Z]{16}                   # Amazon
              | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
              | glpat-[\w-]{16,}                            # GitLab
              | xox[a-z]-[\w-]{8,} | xapp-[\w-]{8,}         # Slack
              | sk-[\w-]{16,}                               # OpenAI, Anthropic
              | (?:sk|rk)_(?:live|test)_\w{10,} | whsec_\w{16,}     # Stripe
              | AIza[\w-]{30,} | ya29\.[\w-]{20,}           # Google
              | SG\.[\w-]{16,64}\.[\w-]{16,64}              # SendGrid
              | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,} | hf_[A-Za-z0-9]{20,}
            )""",
            re.VERBOSE,
        ),
        MARK,
    ),
)


class Redactor:
    """Replaces secrets in texts with ``[redacted]``.

    ``extra`` is the host's own function from text to text; it sees what the built-in rules left.
    """

    def __init__(self, extra: Callable[[str], str] | None = None) -> None:
        #: The host's function, None for none.
        self.extra = extra

    def redact(self, text: str) -> str:
        """Return the text without secrets; a text without any comes back as it is, and so does a redacted one.

        Where the host's function raises, or returns no text, the answer is :data:`REDACTOR_FAILED`.
        """
        hidden, before = _hide(text), text
        for _ in range(_MAX_PASSES):
            # What one rule hides may part two words that hid a secret from another.
            if hidden == before:
                break
            hidden, before = _hide(hidden), hidden
        if self.extra is None:
            return hidden
        try:
            answer = self.extra(hidden)
        except Exception:  # the host's code may raise anything, and its error may quote the secret
            return REDACTOR_FAILED
        return answer if isinstance(answer, str) else REDACTOR_FAILED


def together(redactors: Iterable[Redactor]) -> Redactor:
    """Return one that hides what any of these hides, and shows nothing where one of them fails."""
    extras = [redactor.extra for redactor in redactors if redactor.extra is not None]

    def extra(text: str) -> str:
        for one in extras:
            text = one(text)
        return text

    return Redactor(extra if extras else None)


def _hide(text: str) -> str:
    hidden = hide_values(text)
    for pattern, replacement in _RULES:
        hidden = pattern.sub(replacement, hidden)
    return hidden


def clean(text: str, redactor: Redactor, *, most: int = MAX_TEXT) -> str:
    """Return a text that can be stored and shown: redacted first, then cut to 500 characters, or ``most``.

    NUL and lone surrogates, which SQLite and UTF-8 cannot carry, become U+FFFD. The work does not grow with the length
    of the text; a secret that is cut in two where the look ends is not shown.
    """
    window = _UNSTORABLE.sub("\ufffd", text[:WINDOW])
    redacted = redactor.redact(window)
    if len(text) > WINDOW and redacted != REDACTOR_FAILED:
        redacted = redacted[: max(0, len(redacted) - _MARGIN)] + "…"
    return _cut(_UNSTORABLE.sub("\ufffd", redacted), most)


def describe_error(error: BaseException, redactor: Redactor) -> str:
    """Return an exception as "Type: text", cleaned as by :func:`clean`; never raises.

    Where its ``str()`` raises, a fixed text stands in for it.
    """
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # whatever __str__ raises, the attempt has failed already and has to be written down
        text = _NO_TEXT
    # The name stays outside: "InvalidTokenError: expired" is no token.
    cleaned = clean(text, redactor)
    if cleaned == REDACTOR_FAILED:
        return cleaned
    return _cut(_UNSTORABLE.sub("\ufffd", f"{name}: {cleaned}" if cleaned else name))


def _cut(text: str, most: int = MAX_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
