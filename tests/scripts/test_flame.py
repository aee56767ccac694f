"""Flame graphs from folded stacks."""

import xml.etree.ElementTree as ElementTree

import pytest

from weirlib import common, flame

NAMESPACE = "{http://www.w3.org/2000/svg}"


def frames(text):
    """{name: (share of the width, depth)} of an SVG."""
    root = ElementTree.fromstring(flame.svg(text, "a <title>", "samples"))
    return {g.get("data-n"): (float(g.get("data-w")), int(g.get("data-d"))) for g in root.iter(NAMESPACE + "g")}


def test_widths_and_depths():
    found = frames("main;serve;read 30\nmain;serve;write 10\nidle 60\nmain 0\n")
    assert found["main"] == (pytest.approx(0.4), 0)
    assert found["serve"] == (pytest.approx(0.4), 1)
    assert found["read"] == (pytest.approx(0.3), 2)
    assert found["idle"] == (pytest.approx(0.6), 0)


def test_names_are_escaped():
    assert "a<b>&\"c" in frames('a<b>&"c;x 1\n')


def test_deep_stacks_are_cut():
    assert len(frames(";".join(f"f{i}" for i in range(10000)) + " 1\n")) == flame.MAX_DEPTH


@pytest.mark.parametrize("text", ["", "main\n", "main x\n", "# nothing\n", "main 0\n"])
def test_bad_input(text):
    with pytest.raises(common.WeirError):
        flame.svg(text, "t", "samples")
