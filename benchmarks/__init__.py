"""Speed, memory and agreement, as ratios against rivals measured in the same run.

    python -m benchmarks                      the table of cases
    python -m benchmarks --quick              a twentieth of the rows, to see that it runs
    python -m benchmarks --only full          the cases whose name contains "full"
    python -m benchmarks --save               also write benchmarks/results.md
    python -m benchmarks grid                 logistic and softmax fits over a grid of shapes
    python -m benchmarks.against ../other     this checkout against another one

A rival is a file in `rivals/`, a case a line in `cases.py`. Kinds of cases are in `measures.py`,
for fits at equal accuracy in `equal.py`, for posteriors in `bayes.py`, and for files, Dask and
decisions in the files of these names. `pip install "posteriori[bench]"` installs all rivals; one
that is not installed is left out, and the table says so.
"""
