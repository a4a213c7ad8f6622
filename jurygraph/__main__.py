"""`python -m jurygraph` is the command `jurygraph`."""

from jurygraph.cli import main

if __name__ == "__main__":
    main()
