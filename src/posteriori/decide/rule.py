"""From probabilities to actions."""

from posteriori.typing import Array, Codes


def most_probable(activation: Array) -> Codes:
    """The class of largest posterior probability: the fewest errors (1.5.1).

    Activations serve as well as probabilities, being monotone in them; ties go to the first.
    """
    return activation.argmax(axis=1)
