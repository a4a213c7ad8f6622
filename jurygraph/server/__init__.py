"""The reward server of `jurygraph serve`."""
