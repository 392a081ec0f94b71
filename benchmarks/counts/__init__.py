"""How many components: six families of data whose evidences are known for every number of them."""
