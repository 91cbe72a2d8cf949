import unittest

from shop.cart import Line, receipt, total


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_total_adds_the_lines(self):
        self.assertEqual(total([Line("tea", 450), Line("cup", 1200)]), 1650)

    def test_total_counts_every_piece(self):
        self.assertEqual(total([Line("tea", 450, pieces=3)]), 1350)

    def test_receipt_ends_with_the_total(self):
        self.assertEqual(receipt([Line("tea", 1234)]), "1 x tea 12.34\ntotal 12.34")


if __name__ == "__main__":
    unittest.main()
