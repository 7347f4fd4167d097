package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// otlp sends spans to a collector as OTLP over HTTP, in JSON. The official
// exporter would bring gRPC and the protocol buffers along, which are more
// memory in a server that waits than all the rest of the tracing.
type otlp struct {
	url     string
	headers http.Header
	client  *http.Client
}

// What OTLP calls its messages, as far as they are used.
type (
	otlpValue struct {
		String string `json:"stringValue"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpStatus struct {
		Code int `json:"code,omitempty"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpResourceSpans struct {
		Resource otlpResource     `json:"resource"`
		Scopes   []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpRequest struct {
		Resources []otlpResourceSpans `json:"resourceSpans"`
	}
)

// OTLP numbers the kinds of span from 1, in the order of the library, and has
// the status error as 2.
const otlpError = 2

// ExportSpans sends what has ended. All spans are of one resource and one scope.
func (o *otlp) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	all := make([]otlpSpan, len(spans))
	for i, s := range spans {
		traceID, spanID := s.SpanContext().TraceID(), s.SpanContext().SpanID()
		all[i] = otlpSpan{
			TraceID: hex.EncodeToString(traceID[:]), SpanID: hex.EncodeToString(spanID[:]), Name: s.Name(), Kind: max(1, int(s.SpanKind())),
			Start: nanos(s.StartTime()), End: nanos(s.EndTime()), Attributes: otlpAttributes(s.Attributes()),
		}
		if parent := s.Parent().SpanID(); parent.IsValid() {
			all[i].Parent = hex.EncodeToString(parent[:])
		}
		if s.Status().Code == codes.Error {
			all[i].Status.Code = otlpError
		}
	}
	body, err := json.Marshal(otlpRequest{[]otlpResourceSpans{{
		otlpResource{otlpAttributes(spans[0].Resource().Attributes())},
		[]otlpScopeSpans{{otlpScope{spans[0].InstrumentationScope().Name}, all}},
	}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = o.headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	resp, err := o.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", resp.Status)
	}
	return nil
}

// Shutdown has nothing to let go of but connections.
func (o *otlp) Shutdown(context.Context) error {
	o.client.CloseIdleConnections()
	return nil
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func otlpAttributes(all []attribute.KeyValue) []otlpAttribute {
	var out []otlpAttribute
	for _, a := range all {
		out = append(out, otlpAttribute{string(a.Key), otlpValue{a.Value.String()}})
	}
	return out
}
