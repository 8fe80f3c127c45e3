"""The two-way model: both translation directions in one grid."""

from sbnmt_plugin.families.two_way import criterion, model

__all__ = ["criterion", "model"]
