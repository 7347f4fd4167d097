package memory

import (
	"slices"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
)

// lists are the ids of what is listed, each list in order, and the few records
// that belong to no customer and no vendor. They are locked after the records
// and the keys.
type lists struct {
	sync.Mutex
	accounts []customers.ID
	vendors  []string
	invoices []string
	receipts map[payables.OrderID][]string
	entered  map[payables.VendorID][]payables.InvoiceID // as they came
	imports  map[ledger.Ref]ledger.Record
}

func newLists() lists {
	return lists{
		receipts: map[payables.OrderID][]string{},
		entered:  map[payables.VendorID][]payables.InvoiceID{},
		imports:  map[ledger.Ref]ledger.Record{},
	}
}

// add takes in a record that is new.
func (l *lists) add(record ledger.Record) {
	l.Lock()
	defer l.Unlock()
	switch r := record.(type) {
	case customers.Account:
		at, _ := slices.BinarySearchFunc(l.accounts, r.ID, compareIDs)
		l.accounts = slices.Insert(l.accounts, at, r.ID)
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

func (l *lists) keep(r customers.Imported) {
	l.Lock()
	defer l.Unlock()
	l.imports[r.Ref()] = r
}

func (l *lists) imported(ref ledger.Ref) ledger.Record {
	l.Lock()
	defer l.Unlock()
	return l.imports[ref]
}

func compareIDs(a, b customers.ID) int { return strings.Compare(a.String(), b.String()) }

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
