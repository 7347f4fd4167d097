// Package telemetry counts what the server does, with OpenTelemetry, and shows
// it to Prometheus. Nothing it holds says what was asked or for whom: tools,
// outcomes and times only, all from closed lists.
package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/ports"
)

// buckets of a duration, in seconds: from a call that stays in memory to one
// that runs into its deadline.
var buckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// Metrics are the counters of a server. All methods may be called at once.
type Metrics struct {
	calls    metric.Int64Counter
	duration metric.Float64Histogram
	inFlight metric.Int64UpDownCounter
	refused  metric.Int64Counter
	backend  metric.Float64Histogram
	handler  http.Handler

	options sync.Map // of labels: metric.MeasurementOption, which cost something to make
}

// New makes the counters.
func New() (*Metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("refundledger")
	m := &Metrics{handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	seconds := metric.WithUnit("s")
	for _, err := range []error{
		set(&m.calls)(meter.Int64Counter("refundledger.calls", metric.WithDescription("Tool calls answered, by tool and outcome."))),
		set(&m.duration)(meter.Float64Histogram("refundledger.call.duration", seconds, metric.WithDescription("How long tool calls took."), metric.WithExplicitBucketBoundaries(buckets...))),
		set(&m.inFlight)(meter.Int64UpDownCounter("refundledger.calls.in_flight", metric.WithDescription("Tool calls at work."))),
		set(&m.refused)(meter.Int64Counter("refundledger.requests.refused", metric.WithDescription("HTTP requests that never became a call, by what refused them."))),
		set(&m.backend)(meter.Float64Histogram("refundledger.backend.duration", seconds, metric.WithDescription("How long the ledger took, by what it was asked and the outcome."), metric.WithExplicitBucketBoundaries(buckets...))),
	} {
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// set stores an instrument and hands on its error.
func set[T any](into *T) func(T, error) error {
	return func(instrument T, err error) error {
		*into = instrument
		return err
	}
}

// Handler serves the counters to Prometheus.
func (m *Metrics) Handler() http.Handler { return m.handler }

// labels are the values of up to two attributes.
type labels struct{ name, value, name2, value2 string }

func (m *Metrics) with(l labels) metric.MeasurementOption {
	if o, ok := m.options.Load(l); ok {
		return o.(metric.MeasurementOption)
	}
	attributes := []attribute.KeyValue{attribute.String(l.name, l.value)}
	if l.name2 != "" {
		attributes = append(attributes, attribute.String(l.name2, l.value2))
	}
	o, _ := m.options.LoadOrStore(l, metric.WithAttributeSet(attribute.NewSet(attributes...)))
	return o.(metric.MeasurementOption)
}

// Began counts a call in.
func (m *Metrics) Began(string) { m.inFlight.Add(context.Background(), 1) }

// Ended counts it out.
func (m *Metrics) Ended(tool, outcome string, took time.Duration) {
	ctx := context.Background()
	m.inFlight.Add(ctx, -1)
	m.calls.Add(ctx, 1, m.with(labels{"tool", tool, "outcome", outcome}))
	m.duration.Record(ctx, took.Seconds(), m.with(labels{name: "tool", value: tool}))
}

// Refused counts a request that never became a call.
func (m *Metrics) Refused(why string) {
	m.refused.Add(context.Background(), 1, m.with(labels{name: "reason", value: why}))
}

// Ledger measures how long a ledger takes.
func (m *Metrics) Ledger(next ports.Ledger) ports.Ledger { return measured{next, m} }

type measured struct {
	ports.Ledger
	m *Metrics
}

func (l measured) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	began := time.Now()
	out, err := l.Ledger.Do(ctx, op, cmd)
	l.record(cmd.Name(), began, err)
	return out, err
}

func (l measured) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	began := time.Now()
	view, err := l.Ledger.Load(ctx, t, refs...)
	l.record("load", began, err)
	return view, err
}

func (l measured) record(asked string, began time.Time, err error) {
	outcome := "OK"
	if err != nil {
		outcome = fault.CodeOf(err).String()
	}
	l.m.backend.Record(context.Background(), time.Since(began).Seconds(), l.m.with(labels{"asked", asked, "outcome", outcome}))
}
