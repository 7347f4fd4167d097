package payables

// Restore returns what a store keeps of an id, a unit, an article number or a
// day; "" is none. What the edge accepts may change; what was booked stays as it
// was.
func Restore[T InvoiceID | VendorID | OrderID | ReceiptID | Unit | SKU | Date](text string) T {
	return T(struct{ text string }{text})
}

// RestoreNumber returns the number that a record was made with and what it was
// normalised to then: the claims on numbers go by that.
func RestoreNumber(written, normal string) Number { return Number{written, normal} }
