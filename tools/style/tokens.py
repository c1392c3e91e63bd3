"""C++ text as tokens, and a cursor that walks over them."""

import collections
import re

Token = collections.namedtuple("Token", "kind text line")
END = Token("end", "", 0)

PATTERN = re.compile(
    r"""(?P<doc>///(?!/)[^\n]*)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
      | (?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<number>\d[\w.']*)
      | (?P<char>'(?:\\.|[^'\\\n])*')
      | (?P<id>[A-Za-z_]\w*)
      | (?P<punctuation>::|->|&&|\|\||[^\s\w])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
SKIPPED = {"comment", "directive"}
CLOSING = {"(": ")", "[": "]", "{": "}"}


def tokens_of(text):
    """Returns the tokens of a C++ text, without comments other than docstrings and without directives."""
    tokens, line, at = [], 1, 0
    for found in PATTERN.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        kind = "string" if found.lastgroup in ("raw", "mark") else found.lastgroup
        if kind not in SKIPPED:
            tokens.append(Token(kind, found.group(), line))
    return tokens


class Cursor:
    """A place among tokens. Past the end, each token is empty."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.index = 0

    @property
    def token(self):
        return self.token_at(0)

    @property
    def last_line(self):
        """The line of the token before the cursor."""
        return self.tokens[self.index - 1].line if self.index else 0

    def token_at(self, ahead):
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else END

    def text(self, ahead=0):
        return self.token_at(ahead).text

    def more(self):
        return self.index < len(self.tokens)

    def next(self, count=1):
        self.index += count

    def skip_balanced(self):
        """Skips from an opening bracket to behind its closing one."""
        open_brackets = []
        while self.more():
            text = self.text()
            if self.token.kind == "punctuation":
                if text in CLOSING:
                    open_brackets.append(CLOSING[text])
                elif open_brackets and text == open_brackets[-1]:
                    open_brackets.pop()
            self.next()
            if not open_brackets:
                return

    def skip_angles(self):
        """Skips template arguments; gives up at a semicolon."""
        depth = 0
        while self.more() and self.text() != ";":
            text = self.text()
            if text in CLOSING:
                self.skip_balanced()
                continue
            depth += {"<": 1, ">": -1}.get(text, 0)
            self.next()
            if depth == 0:
                return
