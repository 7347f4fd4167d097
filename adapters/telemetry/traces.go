package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// sendTime is how long a collector may take, unless the environment says.
const sendTime = 10 * time.Second

// Traces makes a span of each tool call, and of what the ledger does in it, and
// sends them to a collector. All methods may be called at once.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// OpenTraces reads OpenTelemetry's own variables: where the collector is
// (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT), whose
// certificates are believed and what it wants to be told; without one there are
// no traces, and nil. It refuses what it can not do. The library reads the others (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER, OTEL_BSP_...) itself.
func OpenTraces(environ []string, log *slog.Logger) (*Traces, error) {
	v := map[string]string{}
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "OTEL_") && value != "" {
			v[name] = value
		}
	}
	of := func(name string) (value, of string) { // what is said of traces alone goes before
		if value := v["OTEL_EXPORTER_OTLP_TRACES_"+name]; value != "" {
			return value, "OTEL_EXPORTER_OTLP_TRACES_" + name
		}
		return v["OTEL_EXPORTER_OTLP_"+name], "OTEL_EXPORTER_OTLP_" + name
	}
	endpoint, from := of("ENDPOINT")
	if endpoint == "" || v["OTEL_SDK_DISABLED"] == "true" || v["OTEL_TRACES_EXPORTER"] == "none" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s must be a URL such as http://127.0.0.1:4318", from)
	}
	if from == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1/traces")
	}
	// What is set and can not be had is refused: nobody looks for traces that are
	// sent another way than they are told to be.
	for _, x := range [...]struct{ name, can, why string }{
		{"PROTOCOL", "http/json", "traces are sent as OTLP over HTTP in JSON: set http/json, or nothing"},
		{"COMPRESSION", "none", "traces are not compressed: set none, or nothing"},
		{"CLIENT_CERTIFICATE", "", "there is no client certificate for a collector"},
		{"CLIENT_KEY", "", "there is no client certificate for a collector"},
	} {
		if value, from := of(x.name); value != "" && value != x.can {
			return nil, fmt.Errorf("%s can not be %s: %s", from, value, x.why)
		}
	}
	if e := v["OTEL_TRACES_EXPORTER"]; e != "" && e != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER can not be %s: it is otlp or none", e)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if file, from := of("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		roots := x509.NewCertPool()
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s must be a file of certificates in PEM", from)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	o := &otlp{url: u.String(), headers: http.Header{}, client: &http.Client{
		Transport:     transport,
		Timeout:       sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the collector redirects") },
	}}
	if ms, from := of("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s must be a number of milliseconds", from)
		}
		o.client.Timeout = time.Duration(n) * time.Millisecond
	}
	if list, from := of("HEADERS"); list != "" {
		for pair := range strings.SplitSeq(list, ",") {
			name, value, ok := strings.Cut(pair, "=")
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
				return nil, fmt.Errorf("%s must be names and values such as api-key=x,b=y", from) // it may hold a secret
			}
			o.headers.Set(name, value)
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "cause", err.Error()) }))
	about, err := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", "refund-ledger")), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	t := &Traces{provider: sdk.NewTracerProvider(sdk.WithBatcher(o), sdk.WithResource(about))}
	t.tracer = t.provider.Tracer("refundledger")
	return t, nil
}

// Close sends what has not been sent.
func (t *Traces) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Start begins the span of a call, under the span of the host that traceparent
// names, if it names one as W3C has it. end is told the outcome.
func (t *Traces) Start(ctx context.Context, tool, traceparent string) (inside context.Context, end func(outcome string)) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	ctx, span := t.tracer.Start(ctx, "tools/call "+tool, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("tool", tool)))
	return ctx, func(outcome string) { finish(span, outcome) }
}

func finish(span trace.Span, outcome string) {
	span.SetAttributes(attribute.String("outcome", outcome))
	switch outcome {
	case fault.Internal.String(), fault.BackendUnavailable.String(), fault.OutcomeUnknown.String():
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// Ledger makes a span of what a ledger does for a call.
func (t *Traces) Ledger(next ports.Ledger) ports.Ledger { return tracedLedger{next, t} }

// Refunds makes a span of each read for a call.
func (t *Traces) Refunds(next ports.Refunds) ports.Refunds { return tracedRefunds{next, t} }

// Journal makes a span of each read for a call.
func (t *Traces) Journal(next ports.Journal) ports.Journal { return tracedJournal{next, t} }

// Census makes a span of each count for a call. It is nil if next is.
func (t *Traces) Census(next ports.Census) ports.Census {
	if next == nil {
		return nil
	}
	return tracedCensus{next, t}
}

// Payables makes a span of each read for a call. It has [ports.Tolerances] if
// next does, and is nil if next is.
func (t *Traces) Payables(next ports.Payables) ports.Payables {
	if next == nil {
		return nil
	}
	p := tracedPayables{next, t}
	if own, ok := next.(ports.Tolerances); ok {
		return struct {
			tracedPayables
			tracedTolerances
		}{p, tracedTolerances{own, t}}
	}
	return p
}

type (
	tracedLedger struct {
		next ports.Ledger
		t    *Traces
	}
	tracedRefunds struct {
		next ports.Refunds
		t    *Traces
	}
	tracedJournal struct {
		next ports.Journal
		t    *Traces
	}
	tracedCensus struct {
		next ports.Census
		t    *Traces
	}
	tracedPayables struct {
		next ports.Payables
		t    *Traces
	}
	tracedTolerances struct {
		own ports.Tolerances
		t   *Traces
	}
)

func (l tracedLedger) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	return inSpan(ctx, l.t, cmd.Name(), func(ctx context.Context) (ledger.Outcome, error) { return l.next.Do(ctx, op, cmd) })
}

func (l tracedLedger) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	return inSpan(ctx, l.t, "load", func(ctx context.Context) (ledger.View, error) { return l.next.Load(ctx, t, refs...) })
}

func (r tracedRefunds) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	return inSpan(ctx, r.t, "list_refunds", func(ctx context.Context) ([]refunds.Refund, error) {
		return r.next.ListRefunds(ctx, t, c, before, limit)
	})
}

func (j tracedJournal) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	return inSpan(ctx, j.t, "list_accounts", func(ctx context.Context) ([]customers.Account, error) {
		return j.next.ListAccounts(ctx, t, after, limit)
	})
}

func (j tracedJournal) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	return inSpan(ctx, j.t, "list_entries", func(ctx context.Context) ([]journal.Entry, error) {
		return j.next.ListEntries(ctx, t, s, after, limit)
	})
}

func (c tracedCensus) Count(ctx context.Context, t access.Tenant) (ports.Counts, error) {
	return inSpan(ctx, c.t, "count", func(ctx context.Context) (ports.Counts, error) { return c.next.Count(ctx, t) })
}

func (p tracedPayables) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	return inSpan(ctx, p.t, "list_invoices", func(ctx context.Context) ([]payables.Invoice, error) {
		return p.next.ListInvoices(ctx, t, f, after, limit)
	})
}

func (p tracedPayables) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	return inSpan(ctx, p.t, "latest_invoices", func(ctx context.Context) ([]payables.Invoice, error) {
		return p.next.LatestInvoices(ctx, t, v, before, limit)
	})
}

func (p tracedPayables) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	return inSpan(ctx, p.t, "sum_invoices", func(ctx context.Context) ([]ports.InvoiceSum, error) { return p.next.SumInvoices(ctx, t) })
}

func (p tracedPayables) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	return inSpan(ctx, p.t, "list_receipts", func(ctx context.Context) ([]payables.Receipt, error) {
		return p.next.ListReceipts(ctx, t, o, after, limit)
	})
}

func (p tracedPayables) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	return inSpan(ctx, p.t, "list_vendors", func(ctx context.Context) ([]payables.Vendor, error) {
		return p.next.ListVendors(ctx, t, after, limit)
	})
}

func (o tracedTolerances) Tolerance(ctx context.Context, t access.Tenant) (payables.Tolerance, error) {
	return inSpan(ctx, o.t, "tolerance", func(ctx context.Context) (payables.Tolerance, error) { return o.own.Tolerance(ctx, t) })
}

// inSpan asks within a span of its own, below that of the call. What is asked
// outside of a call, as probes do, has none.
func inSpan[T any](ctx context.Context, t *Traces, asked string, ask func(context.Context) (T, error)) (T, error) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ask(ctx)
	}
	ctx, span := t.tracer.Start(ctx, "ledger "+asked, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("asked", asked)))
	out, err := ask(ctx)
	outcome := "OK"
	if err != nil {
		outcome = fault.CodeOf(err).String()
	}
	finish(span, outcome)
	return out, err
}
