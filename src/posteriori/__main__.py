"""`python -m posteriori`, and the command `posteriori`."""

INTERRUPTED = 130
"""What a process that the user has stopped ends with."""


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from posteriori.cli import cli
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"The command line needs {error.name}, which is not installed: "
            "pip install 'posteriori[cli,files]'"
        ) from error
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    cli(prog_name="posteriori")


if __name__ == "__main__":
    main()
