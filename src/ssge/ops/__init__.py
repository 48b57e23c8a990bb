"""Operations on whole graphs: sparse products, features, adjacency, moments."""
