package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
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
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
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
// (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) and what it
// wants to be told; without one there are no traces, and nil. The library
// reads the others (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
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
	if protocol, from := of("PROTOCOL"); protocol == "grpc" {
		return nil, fmt.Errorf("%s can not be grpc: traces are sent over HTTP", from)
	}
	o := &otlp{url: u.String(), headers: http.Header{}, client: &http.Client{
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
func (t *Traces) Ledger(next ports.Ledger) ports.Ledger { return traced{next, t} }

type traced struct {
	ports.Ledger
	t *Traces
}

func (l traced) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	ctx, end := l.begin(ctx, cmd.Name())
	out, err := l.Ledger.Do(ctx, op, cmd)
	end(err)
	return out, err
}

func (l traced) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	ctx, end := l.begin(ctx, "load")
	view, err := l.Ledger.Load(ctx, t, refs...)
	end(err)
	return view, err
}

// begin begins a span within a call. What is asked outside of one, as probes
// do, has none.
func (l traced) begin(ctx context.Context, asked string) (context.Context, func(error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	ctx, span := l.t.tracer.Start(ctx, "ledger "+asked, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("asked", asked)))
	return ctx, func(err error) {
		outcome := "OK"
		if err != nil {
			outcome = fault.CodeOf(err).String()
		}
		finish(span, outcome)
	}
}
