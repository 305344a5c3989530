"""A recurrent network that reads text character by character."""

from __future__ import annotations

from torch import Tensor, nn

from idc_core.models.network import Network

_CHARACTERS = 67  # 65 of the SQL strings, padding and the unknown character
_EMBEDDING = 32


class CharLSTM(Network):
    """An LSTM over characters that predicts the next one; `units` is the size of its state.

    Layers: `lstm` has its units at every character; `logits` scores the character that follows the last.
    The network that T. Sellam et al. inspect (DeepBase, SIGMOD 2019) has 512 units and one-hot characters; an
    embedding of 32 numbers per character stands for those here.
    """

    def __init__(self, units: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_CHARACTERS, _EMBEDDING, padding_idx=0)
        self.lstm = nn.LSTM(_EMBEDDING, units, batch_first=True)
        self.logits = nn.Linear(units, _CHARACTERS - 2)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, 65) of character codes (n, length), int64, 0 = padding."""
        states, _ = self.lstm(self.embedding(inputs))
        scores: Tensor = self.logits(states[:, -1])
        return scores
