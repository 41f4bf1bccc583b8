"""Makes templates at random from a grammar, whole ones and broken ones, the same for the same seed."""

import random

NAMES = ["a", "b", "n", "zero", "neg", "x", "yes", "no", "nothing", "s", "empty", "list", "words", "nested", "d", "q", "r"]
RARE_NAMES = ["missing", "config", "users", "pairs", "mixed_list", "dups", "tree", "unicode", "lines", "loop", "self", "caller"]
ATTRIBUTES = ["one", "two", "name", "tile", "index", "items", "keys", "foo", "0", "1", "upper", "length"]
STRINGS = ["", "a", "b", "x y", "Ab-c", "1", "é€", "%s", "it's", "l", "one", "\\n", " p "]
FILTERS = [
    "abs", "attr({a})", "batch(2)|list", "batch(3, {a})|list", "capitalize", "center(5)", "count", "default({a})",
    "default({a}, true)", "d", "dictsort", "dictsort(by='value')", "first", "float", "format({a})", "format({a}, {a})",
    "groupby({a})|list", "indent", "indent(2, true)", "indent({a})", "int", "int({a})", "items|list", "join", "join({a})",
    "last", "length", "list", "lower", "map('string')|list", "map({a})|list", "map(attribute={a})|list", "max", "min",
    "reject|list", "reject('odd')|list", "rejectattr({a})|list", "replace({a}, {a})", "reverse|list", "round", "round(1)",
    "round({a}, 'floor')", "select|list", "select('string')|list", "select({a})|list", "selectattr({a})|list", "slice(2)|list",
    "slice({a}, 0)|list", "sort", "sort(reverse=true)", "sort(attribute={a})", "string", "sum", "sum(start={a})", "title",
    "tojson", "trim", "trim({a})", "truncate(5)", "truncate(4, true, '')", "unique|list", "upper", "wordcount", "nope",
    "join(d={a}, attribute=0)", "default(boolean={a})", "map('upper')|join", "select('>', {a})|list", "map('default', {a})|list",
]
TESTS = [
    "odd", "even", "divisibleby {p}", "defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number",
    "string", "lower", "upper", "mapping", "sequence", "iterable", "callable", "eq {p}", "ne {p}", "lt {p}", "ge {p}", "in {p}",
    "sameas {p}", "filter", "test", "nope", "equalto({a})", "divisibleby({a})",
]
METHODS = [
    "upper()", "lower()", "strip()", "strip({a})", "split()", "split({a})", "split({a}, 1)", "replace({a}, {a})",
    "startswith({a})", "endswith({a})", "find({a})", "count({a})", "join({a})", "format({a})", "title()", "center(7, '*')",
    "keys()|list", "values()|list", "items()|list", "get({a})", "get({a}, {a})", "copy()", "index({a})", "append({a})",
    "pop()", "extend({a})", "zfill(4)", "rsplit(none, 1)", "partition({a})", "splitlines()", "capitalize()", "update({a})",
]
BINARY = ["+", "-", "*", "/", "//", "%", "~"]
COMPARE = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
BROKEN = ["{%", "%}", "{{", "}}", "{#", "#}", "{% endif %}", "{% endfor %}", "{% else %}", "(", ")", "[", "'", "|", ".", "{% raw %}", "{% endraw %}", "-", "+"]


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.macros: list[str] = []
        self.loops = 0

    def templates(self) -> dict[str, str]:
        parts = {f"p{i}": self.body(2) for i in range(self.random.randrange(3))}
        self.parts = list(parts) or ["p0"]
        self.macros = []
        main = self.body(4)
        if self.random.random() < 0.1:
            parts["base"] = self.base()
            main = "{% extends 'base' %}" + self.child() + main
        if self.random.random() < 0.15:
            main = self.broken(main)
        return {"main": main} | parts

    # Text

    def broken(self, text: str) -> str:
        at = self.random.randrange(len(text) + 1)
        if self.random.random() < 0.5:
            return text[:at] + self.random.choice(BROKEN) + text[at:]
        return text[:at] + text[at + self.random.randrange(1, 6) :]

    def text(self) -> str:
        return self.random.choice(["", " ", "\n", "text", "  ", "\n  ", " x ", "\n\n", "{ }", "a\nb", "\t", "  \n", "int v[2] = {0};\n", "# ", "é"])

    def sign(self) -> str:
        return self.random.choice(["", "", "", "", "-", "+"])

    def tag(self, inside: str) -> str:
        return f"{{%{self.sign()} {inside} {self.sign()}%}}"

    # Statements

    def body(self, depth: int) -> str:
        return "".join(self.piece(depth) for _ in range(self.random.randrange(1, 5)))

    def piece(self, depth: int) -> str:
        simple = [self.text, self.text, self.output, self.output, self.comment, self.set, self.raw]
        nested = [self.if_, self.for_, self.with_, self.macro, self.filter_block, self.set_block, self.call, self.call_block, self.include, self.import_, self.namespace, self.print_]
        if depth <= 0:
            return self.random.choice(simple)()
        maker = self.random.choice(simple + nested)
        return maker(depth) if maker in nested else maker()

    def output(self) -> str:
        return f"{{{{{self.random.choice(['', '', '-'])} {self.expression(3)} {self.random.choice(['', '', '-'])}}}}}"

    def comment(self) -> str:
        return f"{{#{self.sign()} c {{{{ }} {self.sign()}#}}"

    def raw(self) -> str:
        return self.tag("raw").replace("+%}", "%}") + self.text() + "{{ x }}" + self.tag("endraw")

    def target(self) -> str:
        return self.random.choice(["q", "r", "a", "q, r", "(q, r)", "s", "i"])

    def set(self) -> str:
        return self.tag(f"set {self.target()} = {self.expression(2)}")

    def set_block(self, depth: int) -> str:
        filters = self.random.choice(["", "", " | upper", " | trim"])
        return self.tag(f"set {self.random.choice('qr')}{filters}") + self.body(depth - 1) + self.tag("endset")

    def namespace(self, depth: int) -> str:
        return self.tag("set ns = namespace(v=0)") + self.body(depth - 1) + self.tag(f"set ns.v = {self.expression(1)}") + "{{ ns.v }}"

    def print_(self, depth: int) -> str:
        return self.tag(f"print {self.expression(depth)}, {self.expression(1)}")

    def if_(self, depth: int) -> str:
        text = self.tag(f"if {self.expression(2)}") + self.body(depth - 1)
        while self.random.random() < 0.3:
            text += self.tag(f"elif {self.expression(2)}") + self.body(depth - 1)
        if self.random.random() < 0.5:
            text += self.tag("else") + self.body(depth - 1)
        return text + self.tag("endif")

    def for_(self, depth: int) -> str:
        target, iterable = self.random.choice(
            [("i", "list"), ("i", "range(3)"), ("q", "words"), ("i", self.expression(1)), ("k, v", "d.items()"), ("q, r", "pairs"), ("i", "'ab'"), ("i", "list|map('string')"), ("a", "nested")]
        )
        condition = f" if {self.expression(1)}" if self.random.random() < 0.3 else ""
        recursive = " recursive" if self.random.random() < 0.1 else ""
        self.loops += 1
        text = self.tag(f"for {target} in {iterable}{condition}{recursive}") + self.body(depth - 1)
        if recursive:
            text += "{{ loop([]) }}"
        self.loops -= 1
        if self.random.random() < 0.3:
            text += self.tag("else") + self.body(depth - 1)
        return text + self.tag("endfor")

    def with_(self, depth: int) -> str:
        return self.tag(f"with {self.random.choice(['q', 'r', 'a'])} = {self.expression(1)}") + self.body(depth - 1) + self.tag("endwith")

    def macro(self, depth: int) -> str:
        name = f"m{len(self.macros)}"
        parameters = self.random.choice(["", "q", "q, r", "q=1", "q, r=a", "q=b, r=q", "a"])
        loops, self.loops = self.loops, 0
        extra = self.random.choice(["", "", "{{ caller() }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller is defined }}"])
        text = self.tag(f"macro {name}({parameters})") + self.body(depth - 1) + extra + self.tag("endmacro")
        self.loops = loops
        self.macros.append(name)
        return text + (self.call(1) if self.random.random() < 0.7 else "")

    def arguments(self) -> str:
        return self.random.choice(["", self.expression(1), f"{self.expression(1)}, {self.expression(0)}", f"q={self.expression(1)}", f"1, r={self.expression(0)}", f"*{self.expression(0)}"])

    def call(self, _: int) -> str:
        name = self.random.choice(self.macros) if self.macros else "m0"
        return f"{{{{ {name}({self.arguments()}) }}}}"

    def call_block(self, depth: int) -> str:
        name = self.random.choice(self.macros) if self.macros else "m0"
        return self.tag(f"call{self.random.choice(['', '(q)', '(q=1)'])} {name}({self.arguments()})") + self.body(depth - 1) + self.tag("endcall")

    def filter_block(self, depth: int) -> str:
        name = self.random.choice(["upper", "indent(2)", "trim", "replace('a', 'b')", "title|lower", "length|string"])
        return self.tag(f"filter {name}") + self.body(depth - 1) + self.tag("endfilter")

    def part(self) -> str:
        return self.random.choice(getattr(self, "parts", ["p0"]))

    def include(self, _: int) -> str:
        more = self.random.choice(["", "", " ignore missing", " without context", " with context", " ignore missing without context"])
        name = self.random.choice([f"'{self.part()}'", f"['nope', '{self.part()}']"])
        return self.tag(f"include {name}{more}")

    def import_(self, _: int) -> str:
        context = self.random.choice(["", " with context", " without context"])
        if self.random.random() < 0.5:
            return self.tag(f"import '{self.part()}' as lib{context}") + "{{ lib.q is defined }}{{ lib.m0 is defined }}[{{ lib }}]"
        return self.tag(f"from '{self.part()}' import q, m0 as f{context}") + "{{ q is defined }}{{ f is defined }}"

    def base(self) -> str:
        return f"<{{% block one %}}{self.body(1)}{{% endblock %}}|{{% block two scoped %}}{self.body(1)}{{% endblock %}}>" + self.text()

    def child(self) -> str:
        name = self.random.choice(["one", "two"])
        use = self.random.choice(["", "{{ super() }}", "{{ self.one() if false }}"])
        return self.tag(f"block {name}") + use + self.body(1) + self.tag("endblock")

    # Expressions

    def name(self) -> str:
        if self.loops and self.random.random() < 0.25:
            return self.random.choice(["i", "loop.index", "loop.last", "loop.first", "loop.length", "loop.revindex0", "loop.index0", "k", "v", "loop.cycle(1, 2)", "loop.changed(i)"])
        return self.random.choice(NAMES if self.random.random() < 0.9 else RARE_NAMES)

    def literal(self) -> str:
        return self.random.choice(
            ["0", "1", "2", "3", "7", "10", "1.5", "0.1", "2.0", "true", "false", "none", "[]", "{}", "()", "1_0", "0x1f", "1e2"]
            + [f"'{text}'" if "'" not in text else f'"{text}"' for text in STRINGS]
        )

    def primary(self, depth: int) -> str:
        choice = self.random.random()
        if depth <= 0 or choice < 0.35:
            return self.name() if self.random.random() < 0.6 else self.literal()
        if choice < 0.45:
            return f"({self.expression(depth - 1)})"
        if choice < 0.55:
            return "[" + ", ".join(self.expression(depth - 1) for _ in range(self.random.randrange(4))) + "]"
        if choice < 0.6:
            return "{" + ", ".join(f"'{key}': {self.expression(depth - 1)}" for key in self.random.sample("abc", self.random.randrange(3))) + "}"
        if choice < 0.65:
            return "(" + "".join(f"{self.expression(depth - 1)}, " for _ in range(self.random.randrange(3))) + ")"
        if choice < 0.75:
            return f"{self.name()}.{self.random.choice(ATTRIBUTES)}"
        if choice < 0.85:
            return f"{self.name()}[{self.subscript()}]"
        return self.filled(f"{self.name()}.{self.random.choice(METHODS)}", depth)

    def subscript(self) -> str:
        part = lambda: self.random.choice(["", "0", "1", "-1", "2", "a", "n"])  # noqa: E731
        return self.random.choice([self.expression(0), "0", "-1", f"{part()}:{part()}", f"{part()}:{part()}:{self.random.choice(['', '1', '2', '-1'])}"])

    def filled(self, text: str, depth: int) -> str:
        while "{a}" in text:
            text = text.replace("{a}", self.expression(max(depth - 2, 0)), 1)
        while "{p}" in text:
            text = text.replace("{p}", self.primary(0), 1)
        return text

    def expression(self, depth: int) -> str:
        if depth <= 0:
            return self.primary(0)
        choice = self.random.random()
        left = self.primary(depth)
        if choice < 0.25:
            return left
        if choice < 0.45:
            return f"{left} {self.random.choice(BINARY)} {self.expression(depth - 1)}"
        if choice < 0.5:
            return f"{self.random.choice(['-', '+', 'not '])}{left}"
        if choice < 0.6:
            return f"{left} {self.random.choice(COMPARE)} {self.expression(depth - 1)}"
        if choice < 0.65:
            return f"{left} {self.random.choice(COMPARE)} {self.primary(0)} {self.random.choice(COMPARE)} {self.primary(0)}"
        if choice < 0.72:
            return f"{left} {self.random.choice(['and', 'or'])} {self.expression(depth - 1)}"
        if choice < 0.77:
            otherwise = f" else {self.expression(depth - 1)}" if self.random.random() < 0.7 else ""
            return f"{left} if {self.expression(depth - 1)}{otherwise}"
        if choice < 0.93:
            return f"{left}{self.random.choice(['|', ' | '])}{self.filled(self.random.choice(FILTERS), depth)}"
        return f"{left} is {self.random.choice(['', 'not '])}{self.filled(self.random.choice(TESTS), depth)}"
