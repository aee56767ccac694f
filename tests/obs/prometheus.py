"""A strict parser of the Prometheus text format 0.0.4: what promtool's check refuses is refused here."""

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
VALUE = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?|Inf)\Z|NaN\Z")
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}


def labels_of(text):
    """{label: value} of what stands between braces."""
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, f"labels: {text}"
        assert match.group(1) not in labels, f"label twice: {text}"
        labels[match.group(1)] = match.group(2)
        at = match.end()
        if at < len(text):
            assert text[at] == "," and at + 1 < len(text), f"labels: {text}"
            at += 1
    return labels


def parse(text):
    """{(name, labels as a sorted tuple): value}; AssertionError names the line that is wrong."""
    assert text.endswith("\n"), "the last line has no end"
    helped, types, samples, closed, current = set(), {}, {}, set(), None
    for line in text.split("\n")[:-1]:
        assert line == line.strip() and line, f"blank: {line!r}"
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped, f"HELP twice: {line}"
            assert len(line.split(" ", 3)) == 4, f"HELP says nothing: {line}"
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and name in helped and kind in TYPES, line
            types[name] = kind
            if current:
                closed.add(current)
            assert name not in closed, f"family in two parts: {line}"
            current = name
        else:
            assert not line.startswith("#"), f"comment: {line}"
            match = re.match(r"([^{ ]+)(?:\{(.*)\})? (\S+)\Z", line)
            assert match and NAME.match(match.group(1)) and VALUE.match(match.group(3)), line
            name, labels = match.group(1), labels_of(match.group(2) or "")
            assert name == current, f"not below its TYPE: {line}"
            if types[name] == "counter":
                assert name.endswith("_total") and float(match.group(3)) >= 0, line
            key = name, tuple(sorted(labels.items()))
            assert key not in samples, f"sample twice: {line}"
            samples[key] = float(match.group(3))
    return samples
