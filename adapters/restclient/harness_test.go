package restclient_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
	"github.com/refundledger/refundledger/ports/portstest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// gateway is the scopes of a service that acts for others.
var gateway = access.ScopesOf(access.CustomerRead, access.RefundRead, access.RefundWrite, access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride, access.ControlRules, access.PrincipalDelegate)

// tokens gives every tenant a token that is its name and a word.
type tokens struct{}

const tokenWord = "-canary-d2f1"

func (tokens) Verify(_ context.Context, token string) (access.Principal, error) {
	name, ok := strings.CutSuffix(token, tokenWord)
	tenant, err := access.ParseTenant(name)
	if err != nil || !ok {
		return access.Principal{}, errors.New("no such token")
	}
	return access.NewPrincipal(tenant, "gateway", access.Service, gateway, access.Free, "")
}

// newServer serves a store.
func newServer(t testing.TB, s portstest.Store) *restserver.Server {
	t.Helper()
	server, err := restserver.New(s.(restserver.Store), restserver.Options{Tokens: tokens{}, Clock: system.Clock{}, IDs: system.IDs{}, Log: quiet, Tolerance: payables.DefaultTolerance()})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// newClient makes a client with the token of a tenant.
func newClient(t testing.TB, url, tenant string, change ...func(*restclient.Options)) *restclient.Client {
	t.Helper()
	o := restclient.Options{URL: url, Token: tenant + tokenWord, Log: quiet}
	for _, c := range change {
		c(&o)
	}
	client, err := restclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// perTenant has a client for each tenant, since a token is of one.
type perTenant struct {
	t   testing.TB
	url string

	mu      sync.Mutex
	clients map[access.Tenant]*restclient.Client
	stamps  *stamps // nil: the server names and dates by itself
}

// stamps is a store under a server that takes the ids and times of the one who
// asked, so that what the server keeps can be compared with a model.
type stamps struct {
	restserver.Store
	asked sync.Map // scope -> operation.Operation
}

type scope struct {
	tenant    access.Tenant
	principal string
	key       operation.Key
}

func (s *stamps) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if asked, ok := s.asked.Load(scope{op.Tenant, op.Principal, op.Key}); ok {
		op = asked.(operation.Operation)
	}
	return s.Store.Do(ctx, op, cmd)
}

// servedWithStamps serves a store that shows what a model can be compared with.
func servedWithStamps(t testing.TB, s portstest.Store) portstest.Store {
	t.Helper()
	under := &stamps{Store: s.(restserver.Store)}
	p := served(t, under).(*perTenant)
	p.stamps = under
	return p
}

func served(t testing.TB, s portstest.Store) portstest.Store {
	t.Helper()
	server := httptest.NewServer(newServer(t, s))
	t.Cleanup(server.Close)
	return &perTenant{t: t, url: server.URL, clients: map[access.Tenant]*restclient.Client{}}
}

func (p *perTenant) of(t access.Tenant) *restclient.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t == (access.Tenant{}) {
		t = must(access.ParseTenant("acme")) // it will refuse
	}
	if p.clients[t] == nil {
		p.clients[t] = newClient(p.t, p.url, t.String())
	}
	return p.clients[t]
}

func (p *perTenant) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if p.stamps != nil {
		p.stamps.asked.Store(scope{op.Tenant, op.Principal, op.Key}, op)
	}
	return p.of(op.Tenant).Do(ctx, op, cmd)
}

func (p *perTenant) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	return p.of(t).Load(ctx, t, refs...)
}

func (p *perTenant) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	return p.of(t).ListRefunds(ctx, t, c, before, limit)
}

func (p *perTenant) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	return p.of(t).ListAccounts(ctx, t, after, limit)
}

func (p *perTenant) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	return p.of(t).ListEntries(ctx, t, s, after, limit)
}

func (p *perTenant) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	return p.of(t).ListInvoices(ctx, t, f, after, limit)
}

func (p *perTenant) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	return p.of(t).LatestInvoices(ctx, t, v, before, limit)
}

func (p *perTenant) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	return p.of(t).SumInvoices(ctx, t)
}

func (p *perTenant) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	return p.of(t).ListReceipts(ctx, t, o, after, limit)
}

func (p *perTenant) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	return p.of(t).ListVendors(ctx, t, after, limit)
}
