"""Tools of judges: what a judge may look up while it judges. They read, and change nothing."""
