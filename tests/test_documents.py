"""Text to data: each way in which a file can be none of its kind, and what YAML makes of innocent words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringnet.documents.values import ValueReader
from ringnet.documents.xml_tree import XmlKind, parse_xml
from ringnet.documents.yaml_text import SCENARIO, YamlKind, read_text, read_value, read_yaml, write_yaml
from ringnet.errors import InputError
from ringnet.scenario import Scenario, load, loads


def refusal(text: str) -> str:
    """The one fault of a text that cannot be read."""
    with pytest.raises(InputError) as caught:
        read_yaml(text, "s.yaml")
    (fault,) = caught.value.faults
    return str(fault)


def told(text: str) -> list[str]:
    """The faults of a text that can be read all the same."""
    return [str(fault) for fault in read_yaml(text, "s.yaml")[1]]


class TestFiles:
    def refusal(self, path: Path | str) -> str:
        with pytest.raises(InputError) as caught:
            read_text(path)
        return str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path):
        assert "no.yaml: the file cannot be read: No such file" in self.refusal(tmp_path / "no.yaml")

    def test_a_folder(self, tmp_path):
        assert "the file cannot be read: Is a directory" in self.refusal(tmp_path)

    def test_a_name_that_is_none(self):
        assert "the file cannot be read" in self.refusal("a\0b")

    def test_a_huge_file_is_not_read_whole(self, tmp_path):
        file = tmp_path / "huge.yaml"
        with file.open("wb") as stream:
            stream.truncate(2**40)
        assert "too large for a scenario; right would be: at most 1,048,576 bytes" in self.refusal(file)

    def test_the_largest_file(self, tmp_path):
        file = tmp_path / "large.yaml"
        file.write_bytes(b"#" * SCENARIO.n_bytes)
        assert len(read_text(file)) == SCENARIO.n_bytes

    def test_a_binary_file_says_where_it_stops_being_text(self, tmp_path):
        file = tmp_path / "s.yaml"
        file.write_bytes(b"name: x\nseed: \xff\n")
        assert "s.yaml:2: the file is not text in UTF-8 (byte 14); got 0xff" in self.refusal(file)

    def test_a_byte_order_mark_is_no_part_of_the_text(self, tmp_path):
        file = tmp_path / "s.yaml"
        file.write_bytes(b"\xef\xbb\xbfseed: 1\n")
        assert read_text(file) == "seed: 1\n"


class TestText:
    @pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "~"])
    def test_empty(self, text):
        assert "s.yaml: the scenario is empty; right would be: scenario_version: 1" in refusal(text)

    @pytest.mark.parametrize(("text", "got"), [("- 1\n", "a list"), ("workers 8\n", "workers 8"), ("8", "8")])
    def test_no_mapping_at_the_top(self, text, got):
        assert refusal(text) == (
            f"s.yaml:1: a scenario is a mapping of keys; got {got}; right would be: scenario_version: 1"
        )

    def test_tabs(self):
        assert refusal("network:\n\tlatency: 5 us\n") == (
            "s.yaml:2: YAML is indented with spaces, not with tabs; got latency: 5 us; right would be: two spaces"
        )

    def test_broken_yaml_names_its_line(self):
        assert "s.yaml:2: the text is not readable as YAML" in refusal("seed: 1\nnetwork: {latency: 5 us\n")
        assert "s.yaml:1: the text is not readable as YAML: mapping values" in refusal("network: latency: 5 us")

    def test_two_documents(self):
        assert "s.yaml:2: another document begins here" in refusal("a: 1\n---\nb: 1")

    def test_a_character_that_is_no_text(self):
        assert refusal("a: 1\nb: \x07") == r"s.yaml:2: the file holds a character that is not text; got \x07"

    def test_an_escape_beyond_unicode(self):
        assert "not readable as YAML" in refusal(r'a: "\UFFFFFFFF"')

    def test_an_unknown_alias(self):
        assert "s.yaml:1: the text is not readable as YAML: found undefined alias" in refusal("a: *b")

    def test_anchors_that_explode(self):
        levels = "".join(
            f"{name}: &{name} [{', '.join(['*' + inner] * 9)}]\n"
            for inner, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        assert "more than 20,000 values" in refusal("a: &a [x, x, x, x, x, x, x, x, x]\n" + levels)

    def test_an_anchor_inside_itself(self):
        assert "nested deeper than 20 levels" in refusal("a: &a [*a]")

    def test_deep_nesting(self):
        assert "nested deeper than 20 levels" in refusal("a: " + "[" * 10_000)

    def test_too_many_values(self):
        assert f"more than {SCENARIO.n_values:,} values" in refusal("[" + "1, " * SCENARIO.n_values + "]")

    def test_an_anchor_that_does_not_explode_is_fine(self):
        document, faults = read_yaml("a: &x {latency: 5 us}\nb: *x\n", "s.yaml")
        assert (document.data["b"], faults) == ({"latency": "5 us"}, [])


class TestEveryFaultAtOnce:
    def test_duplicate_keys_tags_and_empty_values_together(self):
        text = "seed: 1\nworkers:\nseed: 2\ndata: !!python/object/apply:os.system [id]\nnetwork: {latency: ~}\n"
        assert told(text) == [
            "s.yaml:2: workers: the key has no value",
            "s.yaml:3: seed: the key is here twice, first in line 1; got 2",
            "s.yaml:4: data: YAML tags are not read: a scenario is data; "
            "got tag:yaml.org,2002:python/object/apply:os.system",
            "s.yaml:5: network.latency: the key has no value",
        ]

    @pytest.mark.parametrize("tag", ["!!python/name:os.system x", "!mine 1", "!!binary aGk=", "!!set {a}"])
    def test_tags_are_never_followed(self, tag):
        assert "seed: YAML tags are not read" in told(f"seed: {tag}")[0]

    def test_a_key_that_is_a_list(self):
        assert told("? [1, 2]\n: 3\n") == ["s.yaml:1: ?: a key is a single word"]

    def test_a_number_beyond_all_reading(self):
        assert "s.yaml:1: seed: the number cannot be read; got 9999" in told("seed: " + "9" * 5000)[0]

    def test_a_broken_key_is_not_missed_again(self):
        with pytest.raises(InputError) as caught:
            loads("scenario_version:\nworkers: 2\nmessage: 8 B\nnetwork: {bandwidth: !x 5, latency: 5 us}\n")
        assert [fault.path for fault in caught.value.faults] == ["scenario_version", "network.bandwidth"]


class TestYaml11Surprises:
    """Words that older YAML turns into something else stay what they look like."""

    @pytest.mark.parametrize(
        "word", ["on", "off", "yes", "no", "y", "1:30", "010", "0x10", "1_000", "2026-01-01", "<<"]
    )
    def test_stays_text(self, word):
        assert read_value(word, "--set")[0] == word

    @pytest.mark.parametrize(
        ("word", "value"),
        [
            ("1e3", 1000.0),
            ("true", True),
            ("8", 8),
            ("-0", 0),
            (".5", 0.5),
            ("-.inf", float("-inf")),
            ("'8'", "8"),
        ],
    )
    def test_is_read(self, word, value):
        assert read_value(word, "--set")[0] == value

    def test_keys_are_text_as_written(self):
        document, _ = read_yaml("{on: 1, 3: 1, 010: 1, 3->4: 1}", "s.yaml")
        assert list(document.data) == ["on", "3", "010", "3->4"]

    def test_half_an_escape_is_no_text_that_could_not_be_written_again(self):
        assert read_value(r'"a\ud800b"', "--set")[0] == "a\N{REPLACEMENT CHARACTER}b"

    def test_json_escapes(self):
        assert read_value(r'"\ud83d\ude80 \u00b5"', "--set")[0] == "\N{ROCKET} \N{MICRO SIGN}"


def test_lines_and_text_of_every_value():
    document, _ = read_yaml("network:\n  links:\n    3->4: {latency: 20 us}\nweights:\n- 1\n- 3\n", "s.yaml")
    mark = document.marks["network", "links", "3->4", "latency"]
    assert (mark.file, mark.line, mark.text) == ("s.yaml", 3, "20 us")
    assert document.marks["weights", 1].line == 6


# ------------------------------------------------------------------------------------ other kinds of files

KIND = YamlKind("a recipe", "eggs: 3", n_bytes=100, n_values=10, depth=3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "r.yaml: the recipe is empty; right would be: eggs: 3"),
        ("- 1", "r.yaml:1: a recipe is a mapping of keys; got a list; right would be: eggs: 3"),
        ("a: 1\nb: &x [1]\nc: *x", "r.yaml:2: anchors, aliases and tags are not read"),
        ("a: 1\nb: *x", "r.yaml:2: anchors, aliases and tags are not read"),
        ("a: !!python/tuple [1]", "r.yaml:1: anchors, aliases and tags are not read"),
        ("&a a: 1", "r.yaml:1: anchors, aliases and tags are not read"),
        (
            "a:\n  b: [[1]]",
            "r.yaml:2: the text is not readable as YAML: nested deeper than 3 levels; got b: [[1]]",
        ),
        ("a: [1, 2, 3, 4, 5, 6, 7, 8]", "r.yaml:1: the text is not readable as YAML: more than 10 values"),
        ("a: 1\nb: [\n", "r.yaml:2: the text is not readable as YAML: expected the node content"),
    ],
)
def test_another_kind_of_file_is_bounded_on_its_own(text, words):
    with pytest.raises(InputError) as caught:
        read_yaml(text, "r.yaml", KIND)
    assert str(caught.value).startswith(words)


def test_a_file_is_as_large_as_its_kind_allows(tmp_path):
    (tmp_path / "r.yaml").write_bytes(b"#" * 101)
    with pytest.raises(InputError, match="too large for a recipe; right would be: at most 100 bytes"):
        read_text(tmp_path / "r.yaml", KIND)


def test_values_are_taken_out_with_every_mistake_at_its_line():
    text = "name: [x]\nlinks:\n- latency: 5 us\n  hops: 0\n- latency: 5\n  latancy: 1\n  plain: perhaps\n"
    read = ValueReader(read_yaml(text, "v.yaml")[0])
    found = []
    for link in read.items("links"):
        link.known("latency", "hops", "plain")
        found.append(
            (
                link.quantity("latency", "seconds"),
                link.whole("hops", default=2),
                link.number("plain", 0.0, 1.0),
            )
        )
    assert (read.text("name"), read.texts("names"), read.mapping("links").given) == ("", (), {})
    assert found == [(5e-6, 1, 0.0), (1.0, 2, 0.0)]
    assert [str(fault) for fault in read.faults] == [
        "v.yaml:4: links[0].hops: a whole number from 1 to 1048576 is wanted; got 0; right would be: 8",
        "v.yaml:3: links[0].plain: a number from 0 to 1 is wanted; right would be: 0.05",
        "v.yaml:6: links[1].latancy: there is no such key; did you mean latency?",
        "v.yaml:5: links[1].latency: a time needs a unit; got 5; right would be: 5 us or 5 ns",
        "v.yaml:7: links[1].plain: a number from 0 to 1 is wanted; got perhaps; right would be: 0.05",
        "v.yaml:1: name: a text is wanted; got ['x']",
        "v.yaml:1: names: a list of texts is wanted; right would be: []",
        "v.yaml:2: links: a mapping is wanted; got [{'latency': '5 us', 'hops': 0}, {'latency': 5, 'latancy'...",
    ]
    assert read.is_wrong("links")
    assert not read.is_wrong("link")


@pytest.mark.parametrize("value", ["4 8", "4 x 8", "4 nan 8", "true", "[4, 8, 16]"])
def test_numbers_of_a_text(value):
    read = ValueReader(read_yaml(f"n: {value}\n", "v.yaml")[0])
    read.numbers("n", 3)
    assert [str(fault).partition("; got")[0] for fault in read.faults] == [
        "v.yaml:1: n: 3 numbers with spaces between them are wanted"
    ]
    good = ValueReader(read_yaml("n: 4 8.5 1e3\none: 7\n", "v.yaml")[0])
    assert (good.numbers("n", 3), good.numbers("one")) == ((4.0, 8.5, 1000.0), (7.0,))
    assert not good.faults


PLAIN = st.recursive(
    st.text(max_size=12)
    | st.sampled_from(["1e5", "on", "1:30", "010", "~", "0x1F", "=", "<<", "2020-01-01", "null", "-.inf"])
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), PLAIN, max_size=4))
def test_what_is_written_is_read_back(data):
    document, faults = read_yaml(write_yaml(data), "w.yaml")
    assert (document.data, faults) == (data, [])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<a><b/><c/></a>", "x.xml:1: a: an element that has no place here; got <c>; right would be: a > b"),
        (b"<b/>", "x.xml:1: an element that has no place here; got <b>; right would be: a > b"),
        (b"<a>\n<a/></a>", "x.xml:2: a: an element that has no place here; got <a>"),
        (b"<a>" + 9 * b"<b/>" + b"</a>", "x.xml:1: a: too many elements; right would be: at most 5"),
        (b"<a>" + b" " * 100 + b"</a>", "x.xml:1: the file is too large; right would be: at most 90 bytes"),
    ],
)
def test_an_element_stands_where_it_may(content, words):
    kind = XmlKind(n_bytes=90, n_elements=5, depth=4, inside={"a": "", "b": "a"})
    with pytest.raises(InputError) as caught:
        parse_xml(content, "x.xml", kind)
    assert str(caught.value).startswith(words)


# ------------------------------------------------------------------------------------------------ any text at all

GOOD = "{scenario_version: 1, workers: 2, message: 8 B, network: {bandwidth: 1 GB/s, latency: 0 s}"


def scenario_or_error(text: str) -> Scenario | InputError:
    try:
        return loads(text)
    except InputError as error:
        return error


@given(st.text() | st.text("{}[]:,-&*!|>'\"%@`#?~ \n\tab1.<", max_size=60))
@example("a: &a\n")
def test_any_text_is_a_scenario_or_faults(text):
    for whole in (text, f"{GOOD}, {text}}}"):
        found = scenario_or_error(whole)
        assert isinstance(found, Scenario) or all(fault.message for fault in found.faults)
        assert isinstance(found, Scenario) or found.faults


@given(st.binary())
def test_any_bytes_are_a_scenario_or_faults(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError):
        load(file)
