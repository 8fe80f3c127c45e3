"""``python -m sbnmt_plugin`` is ``sbnmt``."""

from sbnmt_plugin.tools.command import main

if __name__ == "__main__":
    main()
