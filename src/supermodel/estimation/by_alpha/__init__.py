"""What is read off alpha, as the paper does: lines, simplices, end points, counts."""
