package memory

import (
	"slices"
	"sync"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
)

// lists are the ids of what is listed, each list in order. A write that adds to
// them has some part of the books locked too, so who reads all parts has the
// lists still.
type lists struct {
	sync.Mutex
	accounts []string
	vendors  []string
	invoices []string
	receipts map[payables.OrderID][]string
	entered  map[payables.VendorID][]payables.InvoiceID // as they came
}

func newLists() lists {
	return lists{
		receipts: map[payables.OrderID][]string{},
		entered:  map[payables.VendorID][]payables.InvoiceID{},
	}
}

// add takes in a record that is new.
func (l *lists) add(record ledger.Record) {
	l.Lock()
	defer l.Unlock()
	switch r := record.(type) {
	case customers.Account:
		insert(&l.accounts, r.ID.String())
	case payables.Vendor:
		insert(&l.vendors, r.ID.String())
	case payables.Invoice:
		insert(&l.invoices, r.ID.String())
		l.entered[r.Vendor] = append(l.entered[r.Vendor], r.ID)
	case payables.Receipt:
		list := l.receipts[r.Order]
		insert(&list, r.ID.String())
		l.receipts[r.Order] = list
	}
}

func insert(list *[]string, id string) {
	at, _ := slices.BinarySearch(*list, id)
	*list = slices.Insert(*list, at, id)
}

// beyond returns the part of a list that is greater than after.
func beyond(list []string, after string) []string {
	at, found := slices.BinarySearch(list, after)
	if found {
		at++
	}
	return list[at:]
}
