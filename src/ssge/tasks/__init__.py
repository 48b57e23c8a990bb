"""Uses of embeddings: search, clusters, classification, outliers, drift; arrays in, arrays out."""
