"""The travelling salesman: the paper's eight cities, and instances of TSPLIB."""
