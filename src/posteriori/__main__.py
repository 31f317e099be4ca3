"""`python -m posteriori`, and the command `posteriori`."""


def main() -> None:
    """Run the command line; an error names what is not installed."""
    try:
        from posteriori.cli import cli
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"The command line needs {error.name}, which is not installed: "
            "pip install 'posteriori[cli,files]'"
        ) from error
    cli(prog_name="posteriori")


if __name__ == "__main__":
    main()
