"""`python -m pricing_pipeline.cli`: the command line where its script is not installed."""

from pricing_pipeline.cli import main

if __name__ == "__main__":
    main()
