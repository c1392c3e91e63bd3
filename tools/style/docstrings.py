"""Each public name of a header has its docstring: a small scanner of C++ declarations, not a compiler.

It sees types, aliases, functions, methods, constants and fields. Exempt is what says nothing of its own: overriding
methods, destructors, operators, defaulted and deleted members, constructors without arguments or from an object of the
same type, enumerators, forward declarations, specialisations, and definitions of what was declared above. A name may
share the docstring of the line right above when that one speaks of it, as overloads do; a field may be named in its
struct's docstring instead.
"""

import re

from style.tokens import Cursor, tokens_of
from style.tree import Finding

SPECIFIERS = {"inline", "static", "constexpr", "constinit", "extern", "const", "mutable", "thread_local", "volatile"}
NOT_A_NAME = {"alignas", "decltype", "noexcept", "explicit", "requires", "__attribute__", "__declspec"}
HIDDEN_NAMESPACES = {"", "detail", "internal"}


def check_docstring(tree):
    """Public names are documented, and a header opens with a sentence on its job."""
    for file in tree.files:
        if not file.endswith(".h") or not file.startswith(("convoy/", "apps/")):
            continue
        if not tree.text(file).startswith("// "):
            yield Finding(file, 1, "docstring", "the header does not open with a sentence on its job")
        scanner = HeaderScanner(tree.text(file))
        scanner.scope("namespace", "", True, "")
        for line, message in scanner.missing:
            yield Finding(file, line, "docstring", message)


class Declaration:
    """What is known of a declaration while it is read."""

    def __init__(self, line, documented, doc):
        self.line = line
        self.documented = documented
        self.doc = doc
        self.name = None
        self.is_function = False
        self.is_exempt = False
        self.parameters = []

    def signature(self):
        return self.name, tuple(self.parameters), self.is_function


class HeaderScanner:
    """Walks through the declarations of one header and collects the public ones that have no docstring."""

    def __init__(self, text):
        self.at = Cursor(tokens_of(text))
        self.blank = {number for number, line in enumerate(text.splitlines(), 1) if not line.strip()}
        self.missing = []

    def scope(self, kind, name, public, scope_doc):
        """Reads declarations up to the end of a namespace, class or file."""
        doc, doc_line, shared, shared_line, shared_name = "", None, "", 0, None
        declared = set()
        while self.at.more() and self.at.text() != "}":
            token = self.at.token
            if token.kind == "doc":
                doc, doc_line = doc + token.text[3:] + "\n", token.line
                self.at.next()
                continue
            if token.text in ("public", "private", "protected") and self.at.text(1) == ":":
                public = token.text == "public"
                self.at.next(2)
                doc, doc_line = "", None
                continue
            near = doc_line is not None and not any(n in self.blank for n in range(doc_line, token.line))
            declaration = Declaration(token.line, near, doc)
            end = self.declaration(declaration, kind, name, public)
            if not near and token.line == shared_line + 1 and declaration.name:
                declaration.documented = declaration.name == shared_name or speaks_of(shared, declaration.name)
            if self.at.more() and self.at.token.kind == "doc" and self.at.text().startswith("///<"):
                declaration.documented = True
                self.at.next()
            if near:
                declared.add(declaration.signature())
            declaration.documented = declaration.documented or declaration.signature() in declared
            if public:
                self.judge(declaration, kind, name, scope_doc)
            if near:
                shared = doc
            shared_line, shared_name = (end, declaration.name) if declaration.documented else (0, None)
            doc, doc_line = "", None

    def judge(self, declaration, kind, scope_name, scope_doc):
        name = declaration.name
        if name is None or declaration.documented or declaration.is_exempt:
            return
        what = "function" if declaration.is_function else "name"
        if kind == "class":
            what = "method" if declaration.is_function else "field"
            if not declaration.is_function and re.search(rf"\b{re.escape(name)}\b", scope_doc):
                return
            if name == scope_name and is_plain_constructor(name, declaration.parameters):
                return
        of = f" of '{scope_name}'" if scope_name else ""
        self.missing.append((declaration.line, f"{what} '{name}'{of} has no docstring"))

    def declaration(self, declaration, kind, scope_name, public):
        """Reads one declaration and returns the line of its last token."""
        at = self.at
        text = at.text()
        if text == ";":
            at.next()
        elif text == "namespace" or (text == "inline" and at.text(1) == "namespace"):
            self.namespace()
        elif text == "extern" and at.token_at(1).kind == "string" and at.text(2) == "{":
            at.next(3)
            self.scope("namespace", scope_name, public, "")
            at.next()
        elif text in ("friend", "static_assert"):
            self.skip_declaration()
        elif text in ("using", "typedef"):
            self.alias(declaration)
        elif re.fullmatch(r"[A-Z][A-Z0-9_]+", text) and at.text(1) == "(":
            at.next()
            at.skip_balanced()  # a macro that stands for declarations
        else:
            self.template_head(declaration)
            if at.text() == "friend":
                declaration.is_exempt = True
            while at.more() and (at.text() in SPECIFIERS or at.text() == "["):
                if at.text() == "[":
                    at.skip_balanced()
                else:
                    at.next()
            if at.text() in ("class", "struct", "union", "enum") and self.type_declaration(declaration, public):
                return at.last_line
            self.function_or_variable(declaration)
        return at.last_line

    def namespace(self):
        names = []
        while self.at.more() and self.at.text() not in ("{", ";"):
            names.append(self.at.text())
            self.at.next()
        if self.at.text() != "{":
            return
        last = "" if names in (["namespace"], ["inline", "namespace"]) else names[-1]
        if last in HIDDEN_NAMESPACES:
            self.at.skip_balanced()
            return
        self.at.next()
        self.scope("namespace", "", True, "")
        self.at.next()

    def alias(self, declaration):
        """Reads `using X = Y;` or `typedef Y X;`; a using-declaration has no name of its own."""
        start, texts = self.at.text(), []
        while self.at.more() and self.at.text() != ";":
            texts.append(self.at.text())
            self.at.next()
        self.at.next()
        if start == "typedef":
            declaration.name = texts[-1]
        elif "=" in texts:
            declaration.name = texts[1]

    def template_head(self, declaration):
        """Skips `template <...>` and the requires clause after it."""
        at = self.at
        while at.text() == "template":
            at.next()
            if at.text() != "<":
                declaration.is_exempt = True  # an explicit instantiation
                return
            declaration.is_exempt = declaration.is_exempt or at.text(1) == ">"
            at.skip_angles()
            while at.text() in ("requires", "&&", "||"):
                at.next()
                while at.text() == "!":
                    at.next()
                if at.text() == "(":
                    at.skip_balanced()
                    continue
                at.next()
                while at.text() == "::":
                    at.next(2)
                if at.text() == "<":
                    at.skip_angles()
        if at.text() == "concept":
            at.next()
            declaration.name = at.text()

    def type_declaration(self, declaration, public):
        """Reads a class, struct, union or enum; returns False when it is the type of a variable or function."""
        at, start = self.at, self.at.index
        is_enum = at.text() == "enum"
        at.next()
        if at.text() in ("class", "struct"):
            at.next()
        while at.text() == "[" or at.text().startswith("CONVOY_") or at.text() == "alignas":
            if at.text() != "[":
                at.next()
            if at.text() in ("(", "["):
                at.skip_balanced()
        name = at.text() if at.token.kind == "id" else ""
        while at.token.kind == "id" or at.text() == "::":
            if at.text() == "::":
                declaration.is_exempt = True  # defined outside of its class
            elif at.text() != "final":
                name = at.text()
            at.next()
        if at.text() == "<":
            declaration.is_exempt = True
            at.skip_angles()
        if at.text() == ";":
            at.next()
            return True
        if at.text() not in (":", "{"):
            at.index = start
            at.next()
            return False
        while at.more() and at.text() != "{":
            at.next()
        declaration.name = name or None
        visible = public and bool(name) and not declaration.is_exempt
        if is_enum or not visible:
            at.skip_balanced()
        else:
            at.next()
            self.scope("class", name, self.tokens_say_struct(start), declaration.doc)
            at.next()
        self.skip_declaration()
        return True

    def tokens_say_struct(self, index):
        return self.at.tokens[index].text in ("struct", "union")

    def function_or_variable(self, declaration):
        """Reads up to the end of a function, method, field or constant."""
        at = self.at
        last, pointer = None, False
        while at.more():
            text = at.text()
            if text == "}":
                return
            if text == ";":
                at.next()
                break
            if text == "=":
                declaration.is_exempt |= declaration.is_function and at.text(1) in ("default", "delete")
                self.name_variable(declaration, last)
                self.skip_declaration()
                return
            if text == "{" and declaration.is_function:
                at.skip_balanced()
                return
            if text in ("{", "["):
                self.name_variable(declaration, last)
                at.skip_balanced()
            elif text == "(":
                if not declaration.is_function and not pointer and last is not None and is_name(last):
                    pointer = self.open_parenthesis(declaration, last)
                else:
                    at.skip_balanced()
            elif text == ":" and declaration.is_function:
                self.initialisers()
                return
            elif text == "<" and not declaration.is_function:
                at.skip_angles()
            elif text == "operator":
                self.operator(declaration)
            else:
                if text == "~" or (declaration.is_function and text in ("override", "final")):
                    declaration.is_exempt = True
                if text == "," and not declaration.is_function:
                    self.name_variable(declaration, last)
                if at.token.kind == "id" and is_name(text):
                    declaration.is_exempt |= not declaration.is_function and self.is_qualified_name()
                    last = text
                at.next()
        self.name_variable(declaration, last)

    def is_qualified_name(self):
        """Returns whether the identifier here ends `Type::name`, followed by what makes it the declared name."""
        at = self.at
        return at.index > 0 and at.tokens[at.index - 1].text == "::" and at.text(1) in ("(", "=", ";", "{")

    def open_parenthesis(self, declaration, last):
        """Reads the parameters of a function, or `(*name)`; returns whether it was the latter."""
        at = self.at
        if at.text(1) in ("*", "&"):
            declaration.name = at.text(2)
            at.skip_balanced()
            return True
        declaration.is_function = True
        declaration.name = last
        start = at.index
        at.skip_balanced()
        declaration.parameters = [token.text for token in at.tokens[start + 1 : at.index - 1]]
        return False

    def operator(self, declaration):
        declaration.is_exempt = declaration.is_function = True
        declaration.name = "operator"
        self.at.next()
        if self.at.text() == "(":
            self.at.next(2)
        while self.at.more() and self.at.text() != "(":
            self.at.next()
        self.at.skip_balanced()

    def initialisers(self):
        """Skips a constructor's member initialisers and its body."""
        at = self.at
        at.next()
        while at.more():
            while at.more() and at.text() not in ("(", "{"):
                if at.text() == "<":
                    at.skip_angles()
                else:
                    at.next()
            at.skip_balanced()
            while at.text() == ".":
                at.next()
            if at.text() == "{":
                at.skip_balanced()
                return
            if at.text() != ",":
                return
            at.next()

    def name_variable(self, declaration, last):
        if declaration.name is None:
            declaration.name = last

    def skip_declaration(self):
        """Skips up to and with the next semicolon, or a function's body."""
        at = self.at
        initialiser = at.text() == "="
        while at.more() and at.text() not in (";", "}"):
            if at.text() in ("(", "[", "{"):
                body = at.text() == "{" and not initialiser
                at.skip_balanced()
                if body and at.text() != ";":
                    return
            else:
                initialiser = initialiser or at.text() == "="
                at.next()
        if at.text() == ";":
            at.next()


def is_name(text):
    return text not in NOT_A_NAME and text not in SPECIFIERS and not text.startswith("CONVOY_")


def speaks_of(doc, name):
    """Returns whether a docstring has a word for the name: its last part, in singular or plural."""
    part = name.strip("_").split("_")[-1].lower()
    words = re.findall(r"[a-z0-9]+", doc.lower())
    return any(word.startswith(part) or (len(word) > 3 and part.startswith(word)) for word in words)


def is_plain_constructor(name, parameters):
    """Returns whether a constructor has no arguments or takes an object of its own type."""
    bare = [text for text in parameters if text not in ("const", "&", "&&")]
    return not bare or (bare[0] == name and len(bare) <= 2)
