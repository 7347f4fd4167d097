package importfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// Load imports the files of a folder into the tenant: customers, vendors,
// orders, receipts and invoices, each .csv or .jsonl, those that are there, in
// this order. It goes to the ledger directly, as part of setting it up: there is
// no caller yet whom the application could permit it. Its error names the file
// and the bad lines.
func Load(ctx context.Context, l ports.Ledger, t access.Tenant, folder string, clock ports.Clock, ids ports.IDs) error {
	in := loading{ctx: ctx, ledger: l, tenant: t, folder: folder, clock: clock, ids: ids}
	for _, file := range []func() error{
		func() error {
			return load(&in, "customers", ReadCustomers, func(list []customers.Open) (ledger.Command, error) { return customers.Import{Customers: list}, nil })
		},
		func() error {
			return load(&in, "vendors", ReadVendors, func(list []payables.Vendor) (ledger.Command, error) {
				return payables.ImportVendors{Vendors: list}, nil
			})
		},
		func() error {
			return load(&in, "orders", ReadOrders, func(list []payables.Order) (ledger.Command, error) {
				return payables.ImportOrders{Orders: list}, nil
			})
		},
		func() error {
			return load(&in, "receipts", ReadReceipts, func(list []payables.Receipt) (ledger.Command, error) {
				return payables.ReceiptsOf(list, func(refs ...ledger.Ref) (ledger.View, error) { return l.Load(ctx, t, refs...) })
			})
		},
		func() error {
			return load(&in, "invoices", ReadInvoices, func(list []payables.Invoice) (ledger.Command, error) {
				return payables.ImportInvoices{Invoices: list}, nil
			})
		},
	} {
		if err := file(); err != nil {
			return err
		}
	}
	if in.files == 0 {
		return fmt.Errorf("%s holds none of the files customers, vendors, orders, receipts and invoices, .csv or .jsonl", folder)
	}
	return nil
}

type loading struct {
	ctx    context.Context
	ledger ports.Ledger
	tenant access.Tenant
	folder string
	clock  ports.Clock
	ids    ports.IDs
	files  int
}

func load[T any](in *loading, name string, read func(io.Reader, Format, func(int)) (File[T], error), command func([]T) (ledger.Command, error)) error {
	for _, ending := range []string{".csv", ".jsonl"} {
		path := filepath.Join(in.folder, name+ending)
		err := loadFile(in, path, read, command)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if in.files++; err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func loadFile[T any](in *loading, path string, read func(io.Reader, Format, func(int)) (File[T], error), command func([]T) (ledger.Command, error)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	file, err := read(f, FormatOf(path, nil), func(int) {})
	if err != nil {
		return err
	}
	if len(file.Problems) > 0 {
		return file.Problems[0].err()
	}
	cmd, err := command(file.List)
	if err != nil {
		return err
	}
	key, err := operation.ParseKey("load-" + strings.ReplaceAll(filepath.Base(path), ".", "-")) // vendors.csv and vendors.jsonl are two
	if err != nil {
		return err
	}
	op := operation.Operation{
		ID: in.ids.NewID(), Tenant: in.tenant, Principal: "seed", Tool: "load", Key: key,
		At: in.clock.Now().UTC().Truncate(time.Millisecond),
	}
	_, err = in.ledger.Do(in.ctx, op, cmd)
	if bad := fault.Of(err); bad != nil && len(bad.Issues) > 0 && len(bad.Issues[0].Path) > 0 {
		return Problem{file.Lines[bad.Issues[0].Path[0].(int)], bad.Issues[0].Message}.err()
	}
	return err
}

func (p Problem) err() error { return fmt.Errorf("line %d: %s", p.Line, p.Why) }
