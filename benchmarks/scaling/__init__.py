"""What a fit costs on many workers: a model, measured on one machine and extended by simulation.

    python -m benchmarks.scaling      measures, simulates and shows the tables of docs/scaling.md

`cost.py` is the model, `measure.py` finds its constants on this machine, `simulate.py` plays a
pass on a cluster, `tables.py` writes what they give in Markdown. `--save` puts the tables into the
document.
"""
