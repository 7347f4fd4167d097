package telemetry

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
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
	for _, i := range inside {
		if i.TraceID != host || i.Parent != call[0].SpanID || i.Kind != 3 {
			t.Errorf("the ledger's is %+v", i)
		}
	}
}

func TestTracesAreOffOrRight(t *testing.T) {
	for environ, problem := range map[string]string{
		"":                             "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=": "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_SDK_DISABLED=true":              "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318":                                         "must be a URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=127.0.0.1":                                       "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be a URL",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_PROTOCOL=grpc":    "can not be grpc",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_TIMEOUT=1s":       "milliseconds",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_HEADERS=hunter2x": "names and values",
	} {
		traces, err := OpenTraces(strings.Fields(environ), slog.New(slog.DiscardHandler))
		if traces != nil || problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", environ, err)
		}
	}
}
