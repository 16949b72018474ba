"""The values of secret-like names: ``password=...``, ``"api_key": "..."``, headers, command line flags, private keys.

A value may be quoted, nested or bare, so a pattern finds the name and a small scanner finds the end of the value.
"""

import re

#: What stands where a secret stood.
MARK = "[redacted]"

_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# What stands before the word inside a name ("db_" of "db_password") is not matched: it would be tried from each
# position of a long run of letters.
_NAME = re.compile(
    r"""
    (?P<word> (?P<header>authorization|cookie) | passw(?:or)?d | passphrase | passcode | pwd | secret | token
      | (?:api|access|account|encryption|license|master|private|shared|signing|ssh)[ _-]?key
      | credential | csrf | jwt | session[_-]?(?:id|key) | signature
      | (?<![a-z])(?:pass|sig|otp)(?==) | (?<![a-z])auth(?=\s?=|\\*["']) )
    [\w.-]{0,30} (?<!error)(?<!exception)
    (?: \\{0,8}["']?\]? \s{0,8} (?: => | :=(?!=) | ==? | :(?!//) ) \s{0,8}
      | (?P<gap> (?:["']\s?,)? \s{1,3} ) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FLAG = re.compile(r"--[\w-]*\Z")
_FLAG_REACH = 40

_QUOTED = re.compile(
    r"""
    (?P<open3>[bru]{0,2}(?P<triple>"{3}|'{3})) .*? (?P<close3>(?P=triple)|\Z)
  | (?P<open>[bru]{0,2}") (?:[^"\\]|\\.)*+ (?P<close>"?)
  | (?P<open1>[bru]{0,2}') (?:[^'\\]|\\.)*+ (?P<close1>'?)
  | (?P<open2>\\{1,8}["']) .*? (?P<close2>(?<!\\)(?P=open2)|\Z)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# A bare value ends at white space, or at a separator that is followed by white space or another name.
_BARE = re.compile(
    r"""(?:(?:bearer|basic|digest|token|apikey|negotiate)\s{1,8})?
        (?:[^\s&;,]|[&;,](?!\s|\Z|\\{0,8}["']?[\w.%\[\]-]{1,64}\\{0,8}["']?\s?[=:]))*+""",
    re.VERBOSE | re.IGNORECASE,
)
_GLUE = frozenset("&;,_\"'")
_LINE = re.compile(r"[^\r\n]*+")
_SCALAR = re.compile(r"(?:-?[\d.]{1,32}|true|false|null|none)(?=[,}\])])", re.IGNORECASE)
_QUOTES = (("open", "open1", "open2", "open3"), ("close", "close1", "close2", "close3"))
_BRACKET = re.compile(r"""[\[\]{}]|"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?""", re.DOTALL)


def hide_values(text: str) -> str:
    """Return the text with each private key and each value of a secret-like name replaced by :data:`MARK`.

    Quotes around a value stay, so that JSON stays JSON.
    """
    text = _PRIVATE_KEY.sub(MARK, text)
    pieces: list[str] = []
    done = 0
    found = _NAME.search(text)
    while found is not None:
        start = found.end()
        if _announces(text, found):
            end, shown = _hide_value(text, start, header=found["header"] is not None)
            pieces += (text[done:start], shown)
            done = end
            start = end
        found = _NAME.search(text, start)
    return "".join((*pieces, text[done:]))


def _announces(text: str, found: re.Match[str]) -> bool:
    """Whether a value follows the name: always after = or :, else only after a flag, or a quote after PASSWORD."""
    if found["gap"] is None:
        return True
    if _FLAG.search(text, max(0, found.start() - _FLAG_REACH), found.start()):
        return True
    return found["word"].lower().startswith("pass") and text[found.end() : found.end() + 1] in ("'", '"')


def _hide_value(text: str, start: int, *, header: bool) -> tuple[int, str]:
    """Return where the value ends and what to show instead of it."""
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        opening, closing = (next(filter(None, quoted.group(*names)), "") for names in _QUOTES)
        return _tail(text, quoted.end()), f"{opening}{MARK}{closing}"
    if header:
        end = _end_of(_LINE, text, start)
    elif text[start : start + 1] in ("[", "{"):
        end = _tail(text, _closing(text, start))
    else:
        scalar = _SCALAR.match(text, start)
        end = _tail(text, scalar.end()) if scalar else _end_of(_BARE, text, start)
    return end, MARK if end > start else ""


def _tail(text: str, end: int) -> int:
    """Return where a value really ends: what follows its quote or bracket without a gap belongs to it."""
    following = text[end : end + 1]
    return _end_of(_BARE, text, end) if following.isalnum() or following in _GLUE else end


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


def _closing(text: str, start: int) -> int:
    """Return the position behind the bracket that closes the one at ``start``; the end of the text without one."""
    depth = 0
    for token in _BRACKET.finditer(text, start):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)
