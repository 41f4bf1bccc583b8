"""Makes templates at random from a grammar, the same for the same seed.

Most are well typed: each expression has a type, and names of the context are set anew only with values of their own
type, so that a template renders whatever the scopes are, and shows by its text which value was in scope. The others
are wild: any expression anywhere, and broken ones.
"""

import random
import re

NAMES = ["a", "b", "n", "zero", "neg", "x", "yes", "no", "nothing", "s", "empty", "list", "words", "nested", "d", "q", "r"]
RARE_NAMES = ["missing", "config", "users", "pairs", "mixed_list", "dups", "tree", "unicode", "lines", "loop", "self", "caller"]
ATTRIBUTES = ["one", "two", "name", "tile", "index", "items", "keys", "foo", "0", "1", "upper", "length"]
STRINGS = ["", "a", "b", "x y", "Ab-c", "1", "→€", "%s", "it's", "l", "one", "\\n", " p "]
FILTERS = [
    "abs", "attr({a})", "batch(2)|list", "batch(3, {a})|list", "capitalize", "center(5)", "count", "default({a})",
    "default({a}, true)", "d", "dictsort", "dictsort(by='value')", "first", "float", "format({a})", "format({a}, {a})",
    "groupby({a})|list", "indent", "indent(2, true)", "indent({a})", "int", "int({a})", "items|list", "join", "join({a})",
    "last", "length", "list", "lower", "map('string')|list", "map({a})|list", "map(attribute={a})|list", "max", "min",
    "reject|list", "reject('odd')|list", "rejectattr({a})|list", "replace({a}, {a})", "reverse|list", "round", "round(1)",
    "round({a}, 'floor')", "select|list", "select('string')|list", "select({a})|list", "selectattr({a})|list", "slice(2)|list",
    "slice({a}, 0)|list", "sort", "sort(reverse=true)", "sort(attribute={a})", "string", "sum", "sum(start={a})", "title",
    "tojson ~ ''", "trim", "trim({a})", "truncate(5)", "truncate(4, true, '')", "unique|list", "upper", "wordcount", "nope",
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

# name -> type, all in context.json; ints are small, lists hold ints
TYPED_NAMES = {
    "int": ["a", "b", "n", "neg", "zero"],
    "num": ["x", "half", "third"],
    "str": ["s", "empty", "path", "mixed", "padded", "unicode", "number_text"],
    "bool": ["yes", "no"],
    "list": ["list", "dups", "empty_list"],
    "strs": ["words"],
    "dict": ["d", "empty_dict"],
}
LOOP_INTS = ["loop.index", "loop.index0", "loop.revindex", "loop.revindex0", "loop.length", "loop.depth", "loop.cycle(1, 2, 3)"]
LOOP_BOOLS = ["loop.first", "loop.last", "loop.changed({int})", "loop.nextitem is defined", "loop.previtem is defined"]

# type -> how it is made from other types; {k} is a literal that is no zero
RULES = {
    "int": [
        "{int} + {int}", "{int} - {int}", "{int} * {k}", "{int} // {k}", "{int} % {k}", "-{int}", "({int})", "{list} | sum", "{list} | length",
        "{str} | length", "{str}.find({str})", "{str}.count({word})", "{int} | abs", "{num} | int", "{str} | int(3)", "({list} + [{int}])[0]",
        "({list} + [1, 2])[-1]", "{int} if {bool} else {int}", "{list} | first | default({int})", "({list} + [{int}]) | max", "({list} + [{int}]) | min",
        "{dict} | length", "{dict}.get({word}, {int})", "{str} | wordcount", "{k} ** 2", "{bool} + {int}", "{int} or {int}", "{int} and {int}",
        "{num} // {k} | int", "{list}.count({int})", "{list} | last | d({k})", "({list} | sum(start={int}))", "[{int}, {int}] | max", "+{int}", "2 * {int}",
    ],
    "num": [
        "{int} / {k}", "{num} * {num}", "{num} + {int}", "{num} - {num}", "{int} | float", "{num} | round(1)", "{num} | round", "{num} | abs", "{num} // {k}",
        "{num} % {k}", "{int} * 0.5", "{num} | round(2, 'floor')", "{num} if {bool} else {int}", "-{num}", "{str} | float(0.5)", "2 ** -{k}", "({num})", "[{num}, {int}] | sum",
        "{num} | round(0, 'ceil')", "1e{k}", "{num} / 3",
    ],
    "str": [
        "{str} + {str}", "{str} ~ {any}", "{any} ~ {any} ~ {any}", "{str} * 2", "{str} | upper", "{str} | lower", "{str} | title", "{str} | capitalize", "{str} | trim",
        "{str} | replace({word}, {str})", "{str}.replace({word}, {str}, 1)", "{str}[{cut}]", "{strs} | join({str})", "{list} | join(', ')", "{any} | string", "'%s-%s' | format({any}, {any})",
        "'%5d|%-3d|%x' | format({int}, {int}, {n})", "'%.2f %g' | format({num}, {num})", "'%r' | format({any})", "'{:>6}|{:<4}'.format({str}, {int})", "'{} {!r}'.format({any}, {str})", "{str}.strip()", "{str}.upper()", "{str}.title()",
        "{str} | center(9)", "{str} | indent(2)", "{str} | indent(1, true, true)", "{str} | truncate(6, true, '.', 0)", "{str} | reverse", "{any} | tojson ~ ''", "{str} if {bool} else {str}",
        "{str} | default('q', true)", "{strs}[0]", "{str}.center(7, '*')", "{str}.zfill(6)", "{str}.partition({word})[0]", "', '.join({strs})", "{str}.removeprefix({word})", "{str} | list | join('.')", "({str})",
        "{str} or {str}", "{str} and {str}", "{strs} | first", "{strs} | last", "{strs} | max", "{strs} | sort | first", "'{:05d}'.format({int})", "'{:.3f}'.format({num})", "'%s' % {int}", "{list} | string", "{str} {str_literal}",
    ],
    "bool": [
        "{int} == {int}", "{int} < {int}", "{int} <= {int} < {int}", "{num} > {int}", "{str} == {str}", "{str} != {str}", "{str} < {str}", "{int} in {list}", "{word} in {str}", "{word} not in {dict}", "not {any}",
        "{bool} and {bool}", "{bool} or {bool}", "{int} is odd", "{int} is even", "{int} is divisibleby {k}", "{int} is divisibleby({k})", "{any} is string", "{any} is number", "{any} is defined", "missing is defined", "missing is not defined",
        "{any} is none", "{any} is mapping", "{any} is sequence", "{any} is iterable", "{str} is lower", "{str} is upper", "{str}.startswith({word})", "{str}.isdigit()", "{list} == {list}", "{any} == {any}", "{any} != {any}", "({bool})",
        "{int} is in {list}", "{int} is eq {k}", "{any} is boolean", "{any} is integer", "{any} is float", "{bool} is true", "{list} < {list}", "d.nope is undefined", "{strs} is sameas words", "{bool} == {bool} == {bool}",
    ],
    "list": [
        "[{int}, {int}]", "[{int}]", "{list} + {list}", "{list}[{cut}]", "{list} | sort", "{list} | sort(reverse=true)", "{list} | reverse | list", "{list} | unique | list", "range({n}) | list", "range({n}, {n}) | list",
        "range({int}, {int}, {k}) | list", "{list} | select('odd') | list", "{list} | reject('odd') | list", "{list} | select('gt', {int}) | list", "{list} | map('abs') | list", "{strs} | map('length') | list", "{list} * 2", "({list})",
        "{dict}.values() | list", "{list} | map('default', {int}) | list", "{list} if {bool} else {list}", "{list} | batch(2) | map('sum') | list", "{list} | slice(2) | map('sum') | list", "[{int} if {bool} else {int}, {int}]", "{list}.copy()", "{list} or [{int}]",
        "pairs | map(attribute=0) | list", "users | map(attribute='age') | list", "users | selectattr('age', 'gt', {int}) | map(attribute='age') | list",
    ],
    "strs": [
        "[{str}, {str}]", "{strs} + [{str}]", "{strs} | sort", "{strs} | map('upper') | list", "({str} ~ ' x').split()", "path.split('/')", "{strs} | unique | list", "{strs} | sort(case_sensitive=true)", "[{str}] * 2", "({strs})", "{strs} if {bool} else {strs}",
        "{strs} | reverse | list", "['q', {str}]", "users | map(attribute='name') | list", "{strs} | map('replace', 'p', {str}) | list", "users | sort(attribute='age,name') | map(attribute='city.name') | list", "{str}.splitlines() + ['e']",
    ],
    "dict": ["{'one': {int}, 'k': {int}}", "dict(d, k={int})", "dict(one={int})", "{dict} if {bool} else {dict}", "{}", "dict([['p', {int}]])", "dict({dict} | dictsort)", "{dict}.copy()", "dict(**{dict})"],
}
LITERALS = {
    "int": ["0", "1", "2", "7", "-3", "1_0", "0x1f", "12"],
    "num": ["0.5", "1.25", "-2.5", "1e3", "0.1", "3.0"],
    "str": ["''", "'a'", "'b c'", "'Ab-c'", "'\\n'", "\"it's\"", "'→€'", "'x\\ty'", "'1'", "'a' 'b'"],
    "bool": ["true", "false", "True"],
    "list": ["[]", "[1, 2, 3]", "[0]"],
    "strs": ["['a', 'B']", "['']", "['x', 'y', 'x']"],
    "dict": ["{}", "{'one': 1}", "{'a': 2, 'b': 3,}"],
}


class StatementGenerator:
    """Wild templates; also how statements are written."""

    def __init__(self, source: random.Random, loops: int = 0) -> None:
        self.random = source
        self.macros: list = []
        self.parts: list[str] = []
        self.loops = loops

    @property
    def wild(self) -> "StatementGenerator":
        return StatementGenerator(self.random, self.loops)

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
        return self.random.choice(["", " ", "\n", "text", "  ", "\n  ", " x ", "\n\n", "{ }", "a\nb", "\t", "  \n", "int v[2] = {0};\n", "# ", "→"])

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
        return self.random.choice(self.parts or ["p0"])

    def include(self, _: int) -> str:
        more = self.random.choice(["", "", " ignore missing", " with context", " ignore missing with context"])
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


class TypedGenerator(StatementGenerator):
    """Statements as above, over expressions that have types."""

    def templates(self) -> dict[str, str]:
        self.parts = []
        self.macros = []
        self.depth = 0
        templates = {}
        for name in ("p0", "p1")[: self.random.randrange(3)]:
            outer = self.macros
            self.macros = []
            templates[name] = self.tag("macro m9(a, q=2)") + self.body(1) + "{{ q }}" + self.tag("endmacro") + self.body(2)
            self.macros = outer
            self.parts.append(name)
        main = self.body(4)
        if self.random.random() < 0.15:
            templates["base"] = self.base()
            main = "{% extends 'base' %}" + self.child() + main
        return templates | {"main": main}

    def body(self, depth: int) -> str:
        visible = len(self.macros)
        text = super().body(depth)
        del self.macros[visible:]  # those defined in an inner scope end with it
        return text

    def typed(self, kind: str, depth: int) -> str:
        if self.random.random() < 0.002:
            return self.wild.expression(1)
        choice = self.random.random()
        if depth <= 0 or choice < 0.3:
            if self.loops and choice < 0.12 and kind in ("int", "bool"):
                return self.filled_with_types(self.random.choice(LOOP_INTS if kind == "int" else LOOP_BOOLS), 0)
            return self.random.choice(TYPED_NAMES[kind] if choice < 0.22 else LITERALS[kind])
        return "(" + self.filled_with_types(self.random.choice(RULES[kind]), depth - 1) + ")"

    def filled_with_types(self, rule: str, depth: int) -> str:
        simple = {
            "k": lambda: self.random.choice(["2", "3", "5"]),
            "n": lambda: self.random.choice(["0", "3", "4", "6"]),
            "word": lambda: self.random.choice(["'a'", "'l'", "'o'", "'one'", "'k'"]),
            "cut": lambda: self.random.choice([":2", "1:", "::2", "::-1", "-2:", "a:n", ":-1", "1:3", ":", "n::-1"]),
            "str_literal": lambda: "~ 'z'",
            "any": lambda: self.typed(self.random.choice(list(RULES)), depth),
        }
        parts = re.split(r"\{(\w+)\}", rule)
        for i in range(1, len(parts), 2):
            parts[i] = simple[parts[i]]() if parts[i] in simple else self.typed(parts[i], depth)
        return "".join(parts)

    def expression(self, depth: int) -> str:
        text = self.typed(self.random.choice(list(RULES)), min(depth, 3))
        return text[1:-1] if text.startswith("(") and self.random.random() < 0.7 and balanced(text[1:-1]) else text

    def kind_and_name(self) -> tuple[str, str]:
        kind = self.random.choice(list(TYPED_NAMES))
        return kind, self.random.choice(TYPED_NAMES[kind])

    def set(self) -> str:
        (kind, name), (kind2, name2) = self.kind_and_name(), self.kind_and_name()
        if self.random.random() < 0.2 and name != name2:
            return self.tag(f"set {name}, {name2} = {self.typed(kind, 2)}, {self.typed(kind2, 2)}")
        return self.tag(f"set {name} = {self.typed(kind, 3)}")

    def set_block(self, depth: int) -> str:
        name = self.random.choice(TYPED_NAMES["str"])
        filters = self.random.choice(["", "", " | upper", " | trim", " | indent(2) | replace('a', 'q')"])
        return self.tag(f"set {name}{filters}") + self.body(depth - 1) + self.tag("endset")

    def namespace(self, depth: int) -> str:
        name = self.random.choice(["ns", "space"])
        loop = self.tag("for i in list") + self.body(depth - 1) + self.tag(f"set {name}.v = {name}.v + {self.typed('int', 1)}") + self.tag("endfor")
        return self.tag(f"set {name} = namespace(v={self.typed('int', 1)})") + loop + f"{{{{ {name}.v }}}}"

    def for_(self, depth: int) -> str:
        target, iterable = self.random.choice(
            [("a", "{list}"), ("n", "range({n})"), ("s", "{strs}"), ("s, a", "{dict}.items()"), ("a, s", "pairs"), ("s", "{str}"), ("a", "{list} | map('abs')"), ("s", "{dict}"), ("(a, s)", "pairs"), ("a", "{list} | select('odd')"), ("s, list", "users | groupby('name')")]
        )
        if target == "s, list":
            iterable, target = "words | batch(2)", "words"
        iterable = self.filled_with_types(iterable, 1)
        condition = f" if {self.typed('bool', 1)}" if self.random.random() < 0.3 and not self.loops else ""
        recursive = " recursive" if self.random.random() < 0.1 and "," not in target else ""
        self.loops += 1
        text = self.tag(f"for {target} in {iterable}{condition}{recursive}") + self.body(depth - 1)
        if recursive:
            text += "{{ loop([]) if loop.depth < 3 }}"
        self.loops -= 1
        if self.random.random() < 0.3:
            outer, self.loops = self.loops, 0
            text += self.tag("else") + self.body(depth - 1)
            self.loops = outer
        return text + self.tag("endfor")

    def if_(self, depth: int) -> str:
        kind = lambda: self.random.choice(list(RULES))  # noqa: E731
        text = self.tag(f"if {self.typed(kind(), 2)}") + self.body(depth - 1)
        while self.random.random() < 0.3:
            text += self.tag(f"elif {self.typed(kind(), 2)}") + self.body(depth - 1)
        if self.random.random() < 0.5:
            text += self.tag("else") + self.body(depth - 1)
        return text + self.tag("endif")

    def with_(self, depth: int) -> str:
        (kind, name), (kind2, name2) = self.kind_and_name(), self.kind_and_name()
        second = f", {name2} = {self.typed(kind2, 1)}" if name != name2 and self.random.random() < 0.5 else ""
        return self.tag(f"with {name} = {self.typed(kind, 2)}{second}") + self.body(depth - 1) + self.tag("endwith")

    def macro(self, depth: int) -> str:
        name = f"m{self.depth}"
        self.depth += 1
        loops, self.loops = self.loops, 0
        parameters = self.random.choice(["a", "a, b=2", "a=1, b=a", "a, n=zero, b=a"])
        extra = self.random.choice(["", "", "{{ caller(a) if caller is defined }}", "{{ varargs }}{{ kwargs }}", "{{ kwargs | length }}"])
        text = self.tag(f"macro {name}({parameters})") + self.body(depth - 1) + extra + self.tag("endmacro")
        self.loops = loops
        self.macros.append((name, "caller" in extra, "varargs" in extra))
        return text + (self.call(1) if self.random.random() < 0.8 else "")

    def typed_arguments(self, takes_more: bool) -> str:
        value = lambda: self.typed("int", 1)  # noqa: E731
        choices = [value(), f"a={value()}", f"*[{value()}]", f"**{{'a': {value()}}}"]
        if takes_more:
            choices += [f"{value()}, 5, 6, 7, 8", f"{value()}, z={value()}", f"{value()}, *[1, 2, 3, 4], y=2, **{{'z': 1}}"]
        return self.random.choice(choices)

    def call(self, depth: int) -> str:
        if not self.macros:
            return self.output()
        name, _, takes_more = self.random.choice(self.macros)
        filters = self.random.choice(["", "", " | upper", " | indent(2)", " ~ 'z'", " | trim"])
        return f"{{{{ {name}({self.typed_arguments(takes_more)}){filters} }}}}"

    def call_block(self, depth: int) -> str:
        able = [macro for macro in self.macros if macro[1]]
        if not able:
            return self.filter_block(depth)
        name, _, takes_more = self.random.choice(able)
        loops, self.loops = self.loops, self.loops
        text = self.tag(f"call({self.random.choice(['b', 'a', 'a=1', 'n'])}) {name}({self.typed_arguments(takes_more)})")
        text += self.body(depth - 1) + self.tag("endcall")
        self.loops = loops
        return text

    def include(self, _: int) -> str:
        if not self.parts:
            return self.tag("include 'nope' ignore missing")
        more = self.random.choice(["", "", " ignore missing", " with context"])
        name = self.random.choice([f"'{self.part()}'", f"['nope', '{self.part()}']", f"'{self.part()[0]}' ~ {self.part()[1]}"])
        return self.tag(f"include {name}{more}")

    def import_(self, _: int) -> str:
        if not self.parts:
            return self.output()
        part = self.part()
        if self.random.random() < 0.5:
            return self.tag(f"import '{part}' as lib with context") + f"{{{{ lib.m9({self.typed('int', 1)}) }}}}{{{{ lib.a is defined }}}}[{{{{ lib }}}}]"
        return self.tag(f"from '{part}' import m9 as f with context") + f"{{{{ f({self.typed('int', 1)}, q={self.typed('int', 0)}) }}}}"

    def print_(self, depth: int) -> str:
        return self.tag(f"print {self.expression(2)}, {self.expression(1)}")


def balanced(text: str) -> bool:
    """Whether brackets close in order, strings aside."""
    level = 0
    for c in re.sub(r"'[^']*'|\"[^\"]*\"", "", text):
        level += (c in "([{") - (c in ")]}")
        if level < 0:
            return False
    return level == 0


class Generator:
    """Templates of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def templates(self) -> dict[str, str]:
        is_wild = self.random.random() < 0.25
        return (StatementGenerator if is_wild else TypedGenerator)(self.random).templates()
