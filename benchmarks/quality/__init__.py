"""Who ends lower: the objective of every contestant at equal k, refitted by the judge."""
