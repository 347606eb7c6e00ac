"""Passwords of options, variables and URLs are masked, and other text is not."""

from __future__ import annotations

import shlex

import pytest

from dpaudit.text.masking import masked, masked_command, masked_values, masked_words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--token=abc", "--token=***"),
        ("--token abc --n 5", "--token *** --n 5"),
        ("API_KEY=abc run", "API_KEY=*** run"),
        ("PASSWORD='a b' run", "PASSWORD=*** run"),
        ("export apiKey=abc", "export apiKey=***"),
        ("https://user:p@ss@host/x", "https://***@host/x"),
        ("tls://token@host:8786", "tls://***@host:8786"),
        ("u=https://host/x?a=1&access_token=abc&b=2", "u=https://host/x?a=1&access_token=***&b=2"),
        ("https://host/x?X-Amz-Signature=ab12", "https://host/x?X-Amz-Signature=***"),
        ("aws_secret_access_key: A/b+", "aws_secret_access_key: ***"),
        ('{"password": "a", "n": 1}', '{"password": ***, "n": 1}'),
    ],
)
def test_passwords_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "dpaudit run a.yaml -o out --jobs 4", "--max-tokens 5", "--tokenizer=bert", "--key=age", "https://host/a@b",
        "a token is drawn", "--token --next", "src/token.py:m", "http://host:80/a@b", "--sig=0.05", "-p 8080:80",
        "gaussian(mu=1)", "tcp://127.0.0.1:8786", "--token", "tokens_per_step=2", "sort_key=a", "prog -u me -w 5",
    ],
)  # fmt: skip
def test_other_text_is_not_masked(text: str) -> None:
    assert masked(text) == text
    assert masked_words(text.split()) == text.split()


def test_a_recorded_command_can_be_pasted_into_a_shell() -> None:
    words = ["my program", "it's", "$HOME", "--token", "a b", "*.csv", "--password=two words"]
    shown = masked_command(words)
    assert shlex.split(shown) == [*words[:4], "***", words[5], "--password=***"]


def test_values_under_secret_names_are_masked_at_all_depths_and_numbers_never() -> None:
    params = {
        "api_key": "abc", "n": 5, "deep": [{"token": "a", "n_tokens": "b"}], "words": ["--secret", "s", 1],
        "password": {"value": "X", "bits": 8, "parts": ["X", {"a": "X"}, None, True]}, "token": 0.2,
        "hosts": {"https://u:X@h/": "https://u:X@h/"},
    }  # fmt: skip
    assert masked_values(params) == {
        "api_key": "***", "n": 5, "deep": [{"token": "***", "n_tokens": "b"}], "words": ["--secret", "***", 1],
        "password": {"value": "***", "bits": 8, "parts": ["***", {"a": "***"}, None, True]}, "token": 0.2,
        "hosts": {"https://***@h/": "https://***@h/"},
    }  # fmt: skip
