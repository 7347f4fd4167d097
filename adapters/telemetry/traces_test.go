package telemetry

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

func TestTracesReachTheCollector(t *testing.T) {
	type sent struct {
		path, token string
		body        []byte
	}
	all := make(chan sent, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		all <- sent{r.URL.Path, r.Header.Get("Api-Key"), b}
	}))
	defer collector.Close()
	traces, err := OpenTraces([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := access.ParseTenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	l := traces.Ledger(memory.New())
	if err := demo.Seed(t.Context(), l, tenant, system.Clock{}, system.IDs{}); err != nil { // outside of a call
		t.Fatal(err)
	}
	const host, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	ctx, end := traces.Start(t.Context(), "trigger_refund", "00-"+host+"-"+span+"-01")
	if err := demo.Seed(ctx, l, tenant, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	// All that a call reads is within it.
	store := memory.New()
	var v payables.VendorID
	read := []func() error{
		func() error { _, err := l.Load(ctx, tenant); return err },
		func() error {
			_, err := traces.Refunds(store).ListRefunds(ctx, tenant, customers.ID{}, 0, 1)
			return err
		},
		func() error { _, err := traces.Journal(store).ListAccounts(ctx, tenant, "", 1); return err },
		func() error {
			_, err := traces.Journal(store).ListEntries(ctx, tenant, journal.Subject{}, 0, 1)
			return err
		},
		func() error {
			_, err := traces.Payables(store).ListInvoices(ctx, tenant, ports.InvoiceFilter{}, "", 1)
			return err
		},
		func() error { _, err := traces.Payables(store).LatestInvoices(ctx, tenant, v, 0, 1); return err },
		func() error { _, err := traces.Payables(store).SumInvoices(ctx, tenant); return err },
		func() error {
			_, err := traces.Payables(store).ListReceipts(ctx, tenant, payables.OrderID{}, "", 1)
			return err
		},
		func() error { _, err := traces.Payables(store).ListVendors(ctx, tenant, "", 1); return err },
		func() error {
			_, err := traces.Payables(decided{store}).(ports.Tolerances).Tolerance(ctx, tenant)
			return err
		},
	}
	for n, ask := range read {
		if err := ask(); err != nil {
			t.Errorf("read %d: %v", n, err)
		}
	}
	if _, own := traces.Payables(store).(ports.Tolerances); own || traces.Payables(nil) != nil {
		t.Error("what is not there is there when it is traced")
	}
	end("BACKEND_UNAVAILABLE")
	_, end = traces.Start(t.Context(), "get_customer_record", "00-nonsense")
	end("OK")
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-all
	var m otlpRequest
	if err := json.Unmarshal(got.body, &m); err != nil || len(m.Resources) != 1 || got.path != "/v1/traces" || got.token != "a b" {
		t.Fatalf("it is sent %+v %v", got, err)
	}
	if text := string(got.body); !strings.Contains(text, `{"key":"service.name","value":{"stringValue":"refund-ledger"}}`) || strings.Contains(text, "acme") || strings.Contains(text, "Alice") {
		t.Errorf("it is sent %s", text)
	}
	byName := map[string][]otlpSpan{}
	for _, s := range m.Resources[0].Scopes[0].Spans {
		byName[s.Name] = append(byName[s.Name], s)
	}
	call, other, inside := byName["tools/call trigger_refund"], byName["tools/call get_customer_record"], byName["ledger customers.open"]
	if len(call) != 1 || len(other) != 1 || len(inside) == 0 {
		t.Fatalf("the spans are %s", got.body)
	}
	if c := call[0]; c.TraceID != host || c.Parent != span || c.Kind != 2 || c.Status.Code != otlpError || len(c.Start) != 19 || c.End < c.Start {
		t.Errorf("the call is %+v", c)
	}
	if o := other[0]; o.TraceID == host || len(o.TraceID) != 32 || o.Parent != "" || o.Status.Code != 0 {
		t.Errorf("the call of its own is %+v", o)
	}
	for _, asked := range strings.Fields("load list_refunds list_accounts list_entries list_invoices latest_invoices sum_invoices list_receipts list_vendors tolerance") {
		all := byName["ledger "+asked]
		if len(all) == 0 {
			t.Errorf("%s has no span", asked)
		}
		inside = append(inside, all...)
	}
	for _, i := range inside {
		if i.TraceID != host || i.Parent != call[0].SpanID || i.Kind != 3 {
			t.Errorf("the ledger's is %+v", i)
		}
	}
}

// decided is a ledger with a tolerance of its own.
type decided struct{ ports.Payables }

func (decided) Tolerance(context.Context, access.Tenant) (payables.Tolerance, error) {
	return payables.DefaultTolerance(), nil
}

// Only an error is one: a span that is said to be OK is not.
func TestTheStatusOfASpan(t *testing.T) {
	var m otlpRequest
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
	}))
	defer collector.Close()
	o := &otlp{url: collector.URL, headers: http.Header{}, client: collector.Client()}
	var spans []sdk.ReadOnlySpan
	for _, code := range []codes.Code{codes.Unset, codes.Error, codes.Ok} {
		spans = append(spans, tracetest.SpanStub{Status: sdk.Status{Code: code}}.Snapshot())
	}
	if err := o.ExportSpans(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, s := range m.Resources[0].Scopes[0].Spans {
		got = append(got, s.Status.Code)
	}
	if !slices.Equal(got, []int{0, otlpError, 0}) {
		t.Errorf("the statuses are %v", got)
	}
}

// A collector whose certificate the file names is believed, and no other.
func TestTheCertificateOfACollector(t *testing.T) {
	asked := make(chan string, 10)
	collector := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	collector.Config.ErrorLog = log.New(io.Discard, "", 0)
	collector.StartTLS()
	defer collector.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, environ := range [][]string{nil, {"OTEL_EXPORTER_OTLP_CERTIFICATE=" + file}} {
		traces, err := OpenTraces(append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}, environ...), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, end := traces.Start(t.Context(), "get_customer_record", "")
		end("OK")
		_ = traces.Close(t.Context()) // it says what could not be sent
		if (len(asked) == 1) != (environ != nil) {
			t.Errorf("with %v it is asked %d times", environ, len(asked))
		}
	}
}

func TestTracesAreOffOrRight(t *testing.T) {
	for environ, problem := range map[string]string{
		"":                             "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=": "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_SDK_DISABLED=true":                                                                 "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318":                                                                                            "must be a URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=127.0.0.1":                                                                                          "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be a URL",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                                                       "can not be grpc",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_TIMEOUT=1s":                                                          "milliseconds",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_HEADERS=hunter2x":                                                    "names and values",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":                                              "OTEL_EXPORTER_OTLP_PROTOCOL can not be http/protobuf: traces are sent as OTLP over HTTP in JSON",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_PROTOCOL=http/json": "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL can not be",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_COMPRESSION=gzip":                                                    "OTEL_EXPORTER_OTLP_COMPRESSION can not be gzip",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere":                                                "OTEL_EXPORTER_OTLP_CERTIFICATE must be a file of certificates",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_CERTIFICATE=/dev/null":                                               "must be a file of certificates",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/a":                                               "no client certificate",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_CLIENT_KEY=/a":                                                       "no client certificate",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_TRACES_EXPORTER=zipkin":                                                            "OTEL_TRACES_EXPORTER can not be zipkin",
	} {
		traces, err := OpenTraces(strings.Fields(environ), slog.New(slog.DiscardHandler))
		if traces != nil || problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", environ, err)
		}
	}
}
