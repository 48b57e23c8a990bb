"""Run the command line with ``python -m ssge``."""

from ssge.cli import main

if __name__ == "__main__":
    main()
