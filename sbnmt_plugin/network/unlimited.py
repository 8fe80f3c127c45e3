"""What encoders of no fixed length share."""

from fairseq.models import FairseqEncoder
from torch import Tensor

POSITIONS = 100_000  # as many as fairseq's LSTM takes


class UnlimitedEncoder(FairseqEncoder):
    """An encoder whose ``encoder_out`` is time-major, and all else sentence-major."""

    def words_first(self, src_tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Where there is padding, and the columns that put it behind the words, (B, S).

        Args:
            src_tokens: (B, S), padded on either side.
        """
        padding = src_tokens.eq(self.dictionary.pad())
        return padding, padding.byte().sort(dim=1, stable=True).indices

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """fairseq's; sentences may be copied."""
        return {
            name: [x.index_select(int(name == "encoder_out"), new_order) for x in found]
            for name, found in encoder_out.items()
        }

    def max_positions(self) -> int:
        """Of the source."""
        return POSITIONS
