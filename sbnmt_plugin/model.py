"""The Python interface under the name that it has had since 0.1.0."""

from sbnmt_plugin.families.sb.model import SBTransformerModel

__all__ = ["SBTransformerModel"]
