package customers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// ImportKind is the kind of an import record.
var ImportKind = ledger.Kind{Name: "import"}

// Imported is the record of an import.
type Imported struct {
	ID         operation.ID // the operation's
	Opened     int          // accounts that are new
	Unchanged  int          // accounts that had been opened with the same facts
	ImportedAt time.Time    // the operation's time
}

// Ref names the record.
func (i Imported) Ref() ledger.Ref { return ledger.Ref{Kind: ImportKind, ID: i.ID.String()} }

// ImportName is the name of the command [Import].
const ImportName = "customers.import"

// MaxImport is how many customers one import may hold.
const MaxImport = 50_000

// Import is the command that opens many accounts, all or none. An account that
// was opened with the very same facts stays as it is, whatever has become of
// its balance since, so an import may be sent again.
type Import struct{ Customers []Open }

// Name is [ImportName].
func (Import) Name() string { return ImportName }

// Facts are the number of customers and a digest of them.
func (c Import) Facts() []operation.Fact {
	var all []operation.Fact
	for _, o := range c.Customers {
		all = append(all, o.Facts()...)
	}
	return []operation.Fact{
		{Name: "customers", Value: strconv.Itoa(len(c.Customers))},
		{Name: "sha256", Value: fmt.Sprintf("%x", operation.FingerprintOf(ImportName, all))},
	}
}

// Reads names each account, and its first entry, which says what it was opened
// with.
func (c Import) Reads() []ledger.Ref {
	refs := make([]ledger.Ref, 0, 2*len(c.Customers))
	for _, o := range c.Customers {
		refs = append(refs, o.ID.Ref(), ledger.EntryRef(o.ID.Subject(), 1))
	}
	return refs
}

// Check returns an issue for each customer that is not valid or stands there
// twice, or one for an import that is empty or too large. The path of an issue
// is the customer's position, from 0, and the field.
func (c Import) Check() []fault.Issue {
	if n := len(c.Customers); n == 0 || n > MaxImport {
		return []fault.Issue{{Path: []any{}, Code: "import_size", Message: fmt.Sprintf("an import holds 1 to %d customers, not %d", MaxImport, n)}}
	}
	var issues []fault.Issue
	seen := make(map[ID]bool, len(c.Customers))
	for i, o := range c.Customers {
		for _, f := range o.Check() {
			f.Path = append([]any{i}, f.Path...)
			issues = append(issues, f)
		}
		if seen[o.ID] {
			issues = append(issues, fault.Issue{Path: []any{i, "id"}, Code: "twice", Message: o.ID.text + " stands there twice"})
		}
		seen[o.ID] = true
	}
	return issues
}

// Decide refuses InvalidInput with the issues of [Import.Check], and with one
// for each customer that was opened with other facts before. The answer is the
// record of the import.
func (c Import) Decide(v ledger.View) (ledger.Change, error) {
	done := Imported{ID: v.Op.ID, ImportedAt: v.Op.At}
	var change ledger.Change
	issues := c.Check()
	if len(issues) > 0 && len(issues[0].Path) == 0 {
		return ledger.Change{}, fault.Invalid(issues) // of the size: the customers are not looked at
	}
	for i, o := range c.Customers {
		if _, exists := ledger.Get[Account](v, o.ID.Ref()); exists {
			first, ok := ledger.Get[ledger.Booked](v, ledger.EntryRef(o.ID.Subject(), 1))
			if !ok || !slices.Equal(first.Facts(), o.Facts()) && !slices.Equal(first.Facts(), operation.Without(o.Facts(), factDigits)) {
				issues = append(issues, fault.Issue{Path: []any{i, "id"}, Code: "conflict", Message: o.ID.text + " exists already and was opened with other facts"})
			}
			done.Unchanged++
			continue
		}
		if len(issues) > 0 {
			continue // nothing will be opened, but every problem is named
		}
		account, entry, err := o.open(v.Op, ImportName)
		if err != nil {
			return ledger.Change{}, err
		}
		change.Put, change.Entries = append(change.Put, account), append(change.Entries, entry)
		done.Opened++
	}
	if len(issues) > 0 {
		slices.SortStableFunc(issues, func(a, b fault.Issue) int { return cmp.Compare(a.Path[0].(int), b.Path[0].(int)) })
		return ledger.Change{}, fault.Invalid(issues)
	}
	change.Answer = done
	return change, nil
}
