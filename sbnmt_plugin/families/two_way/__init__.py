"""The two-way model: both translation directions in one grid."""
