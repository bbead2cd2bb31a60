import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.values.text import tokenize


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        ("P30 128GB", {"p30", "128gb"}),
        (["New phone", "P30"], {"new", "phone", "p30"}),
        ("Straße, ＡＢＣ", {"strasse", "abc"}),
        ("e-mail o'clock", {"e", "mail", "o", "clock"}),
        ("", set()),
        ("...", set()),
        (["a", "a"], {"a"}),
    ],
)
def test_plain(value, tokens):
    assert tokenize(value, "plain") == tokens


def test_as_is_takes_each_text_whole():
    assert tokenize("New phone", "as-is") == {"New phone"}
    assert tokenize(["New phone", "P30"], "as-is") == {"New phone", "P30"}


@given(st.text())
def test_a_token_is_its_own_only_token(text):
    for token in tokenize(text, "plain"):
        assert tokenize(token, "plain") == {token}


@pytest.mark.parametrize("value", [3, None, b"abc", ["a", 3]])
def test_refused_naming_the_value(value):
    with pytest.raises(ValueError, match="is accepted"):
        tokenize(value, "plain")
