def count_the_flour():
    """What the bakery's own schedule calls."""
