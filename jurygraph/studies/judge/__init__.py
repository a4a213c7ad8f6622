"""Agreement of judges with people: what a judge says of responses that people have labelled."""
