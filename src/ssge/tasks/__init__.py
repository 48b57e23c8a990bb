"""What embeddings are for: search, clusters, classes of the other nodes, outliers; arrays in, arrays out."""
