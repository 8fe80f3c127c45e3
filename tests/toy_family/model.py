"""The toy family's model, with what fairseq wants of one."""

from fairseq.models import BaseFairseqModel, register_model, register_model_architecture
from torch import nn

from sbnmt_plugin import hub
from sbnmt_plugin.network.protocol import Model
from toy_family.decoder import RecurrentDecoder


class MeanEncoder(nn.Module):
    """Mean of the source's embeddings, (B, C)."""

    def __init__(self, dictionary, channels):
        super().__init__()
        self.dictionary = dictionary
        self.embed = nn.Embedding(len(dictionary), channels, dictionary.pad())

    def forward(self, src_tokens, src_lengths=None):
        """Encode B sentences (B, S)."""
        return self.embed(src_tokens).mean(1)

    def forward_torchscript(self, net_input):
        """The name by which the search calls it."""
        return self(net_input["src_tokens"])


@register_model("toy")
class ToyModel(hub.Pretrained, Model, BaseFairseqModel):
    """Two recurrent streams that read each other."""

    searched_by = "toy"
    bidirectional = True
    short_answers = True  # --toy-limit counts for it

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @classmethod
    def add_args(cls, parser):
        """Its one option of its own."""
        parser.add_argument("--toy-channels", type=int, help="channels")

    @classmethod
    def build_model(cls, args, task):
        """Build from a namespace."""
        source, target = task.source_dictionary, task.target_dictionary
        decoder = RecurrentDecoder(len(target), args.toy_channels)
        decoder.dictionary = target
        return cls(MeanEncoder(source, args.toy_channels), decoder)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, live=None):
        """Logits of the live places, as the criterion asks for them."""
        read = self.encoder(src_tokens)
        return self.decoder.score(prev_output_tokens, read, live), {}

    def max_positions(self):
        """Of source and target."""
        return 1000, 1000

    def max_decoder_positions(self):
        """Of the target."""
        return 1000


@register_model_architecture("toy", "toy")
@register_model_architecture("toy", "toy_transformer_tiny")  # the recipe toy's size
def toy(args):
    """Defaults."""
    args.toy_channels = getattr(args, "toy_channels", None) or 24
