"""The command line: `posteriori fit` fits a model to files, and prints its summary.

Progress is shown on the error stream, so that the summary can be written to a file. The library is
imported when a command runs, so that help is quick.
"""

import warnings
from ast import literal_eval
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

import posteriori

# The models that need no other parameter.
MODELS = (
    "Adaline",
    "BayesianLogisticRegression",
    "FisherDiscriminant",
    "GLM",
    "GaussianClassifier",
    "LeastSquaresClassifier",
    "LogisticRegression",
    "NaiveBayes",
    "Perceptron",
    "ProbitRegression",
    "ThresholdRegression",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(posteriori.__version__, prog_name="posteriori")
def cli() -> None:
    """Probabilistic linear classification, from the data to the decision."""


@cli.command()
@click.argument("source", nargs=-1, required=True)
@click.option("--target", "-t", multiple=True, help="The column of labels, or of soft labels.")
@click.option(
    "--model",
    "-m",
    type=click.Choice(MODELS, case_sensitive=False),
    default="LogisticRegression",
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(MODELS)}.",
)
@click.option(
    "--set", "given", multiple=True, metavar="NAME=VALUE", help="A parameter of the model."
)
@click.option("--column", "-c", "columns", multiple=True, help="A feature. [default: all others]")
@click.option("--weight", help="The column of row weights.")
@click.option("--offset", help="A column that is added to the activations.")
@click.option(
    "--levels",
    multiple=True,
    metavar="COLUMN=A,B,...",
    help="The levels of a column of text, the reference first.",
)
@click.option("--format", help="parquet, csv or ipc, where the file names do not show it.")
@click.option("--cache", help="A folder for the cache of decoded batches.")
@click.option("--predict", multiple=True, metavar="SOURCE", help="Other rows, to predict.")
@click.option("--to", metavar="FILE", help="The Parquet file for the predictions.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def fit(
    source: Sequence[str],
    target: Sequence[str],
    model: str,
    given: Sequence[str],
    columns: Sequence[str],
    weight: str | None,
    offset: str | None,
    levels: Sequence[str],
    format: str | None,
    cache: str | None,
    predict: Sequence[str],
    to: str | None,
    quiet: bool,
) -> None:
    """Fit a model to Parquet, CSV or Arrow files, and print its summary.

    SOURCE is a file, a folder, or several files; they may be larger than memory.

    \b
      posteriori fit flights/ --target late
      posteriori fit rows.csv -t ill -m GaussianClassifier --set covariance=full
      posteriori fit old.csv -t ill --predict new.csv --to predictions.parquet
    """
    from rich.console import Console

    from posteriori.rows.predictions import new_file
    from posteriori.rows.source import Bar

    if bool(predict) != (to is not None):
        raise click.UsageError("--predict and --to go together: the rows, and the file.")
    parameters = {name: _value(text) for name, text in _pairs("--set", given).items()}
    try:
        estimator = getattr(posteriori, model)().set_params(**parameters)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from error
    categories = {name: each.split(",") for name, each in _pairs("--levels", levels).items()}
    with _without_tracebacks():
        progress = False if quiet else Bar(Console(stderr=True))
        reading: dict[str, Any] = {"offset": offset, "format": format, "progress": progress}
        rows = posteriori.scan(
            _one_or_all(source),
            target=_one_or_all(target),
            weight=weight,
            columns=list(columns) or None,
            categories=categories,
            cache=cache or True,
            **reading,
        )
        new = None
        if predict:
            new = posteriori.scan(_one_or_all(predict), columns=rows.roles.columns, **reading)
            new_file(to, rows, new)
        estimator.fit(rows)
        click.echo(str(estimator.summary()))
        if new is not None:
            predict_all = getattr(estimator, "predict_proba", estimator.predict)
            click.echo(f"Predictions are in {predict_all(new, to=to)}", err=True)


def _one_or_all(names: Sequence[str]) -> Any:
    """One as it is, several as a list, and none as None."""
    return list(names) if len(names) > 1 else next(iter(names), None)


def _value(text: str) -> Any:
    """A value as Python writes it, or the text itself.

    >>> _value("1.5"), _value("None"), _value("evidence")
    (1.5, None, 'evidence')
    """
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return text


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """Names and values from options of the form 'name=value'.

    >>> _pairs("--levels", ["size=small,big"])
    {'size': 'small,big'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"'{text}' is not of the form NAME=VALUE.", param_hint=option)
        if name in found:
            raise click.BadParameter(f"'{name}' is given twice.", param_hint=option)
        found[name] = value
    return found


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Print errors and warnings of the library in one line each, without a traceback."""
    from posteriori.errors import Interrupted, PosterioriError, PosterioriWarning

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("once", PosterioriWarning)
        warnings.showwarning = show
        try:
            yield
        except PosterioriError as error:
            raise click.ClickException(str(error)) from error
        except Interrupted as error:
            click.echo(error.problem, err=True)
            raise SystemExit(130) from error  # as a process that is stopped by Ctrl-C
