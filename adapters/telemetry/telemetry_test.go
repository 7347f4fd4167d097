package telemetry

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
)

func TestMetricsShowWhatHappened(t *testing.T) {
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m.Began("trigger_refund")
	}
	m.Ended("trigger_refund", "OK", 2*time.Millisecond)
	m.Ended("trigger_refund", "POLICY_VIOLATION", time.Millisecond)
	m.Refused("token")
	tenant, err := access.ParseTenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	l := m.Ledger(memory.New())
	if err := demo.Seed(t.Context(), l, tenant, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`refundledger_calls_total{outcome="OK",tool="trigger_refund"} 1`,
		`refundledger_calls_total{outcome="POLICY_VIOLATION",tool="trigger_refund"} 1`,
		`refundledger_calls_in_flight 1`,
		`refundledger_call_duration_seconds_count{tool="trigger_refund"} 2`,
		`refundledger_call_duration_seconds_bucket{tool="trigger_refund",le="0.001"} 1`,
		`refundledger_requests_refused_total{reason="token"} 1`,
		`refundledger_backend_duration_seconds_count{asked="customers.open",outcome="OK"} 3`,
		`go_goroutines `,
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("it lacks %s", line)
		}
	}
	for _, personal := range []string{"acme", "Alice", "CUST-"} {
		if strings.Contains(w.Body.String(), personal) {
			t.Errorf("it tells %q", personal)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "go_") && !strings.HasPrefix(line, "#") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

func BenchmarkCall(b *testing.B) {
	m, err := New()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Began("trigger_refund")
		m.Ended("trigger_refund", "OK", time.Millisecond)
	}
}
