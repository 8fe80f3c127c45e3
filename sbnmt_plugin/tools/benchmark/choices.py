"""The choices of the command line, known without torch."""

# measured where they are asked for
SLOW = (
    *("SB-NMT λ=0", "SB-NMT λ=0 rescored"),
    *("SB-NMT best 2 rescored", "SB-NMT λ=0 best 2 rescored"),
    *("SB-NMT exported", "SB-NMT exported rescored"),
)
GRIDS = ("headline", "full")
LOW = {"cpu": "bfloat16", "cuda": "float16"}  # the device's fast type
SIZES = {  # channels, feed-forward channels, layers on each side, heads
    "tiny": (64, 128, 2, 4),
    "small": (256, 1024, 3, 4),
    "base": (512, 2048, 6, 8),
    "big": (1024, 4096, 6, 16),
}
