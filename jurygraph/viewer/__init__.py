"""The page of `jurygraph view`: look at a judge and not at a log. It lays out what `views` gives, in a browser."""
