// Package restwire is what the REST server and its client share: the names and
// limits of the wire, problem documents, the resource of each command and each
// read, and the documents they exchange. The OpenAPI document follows from the
// same declarations.
package restwire

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/fault"
)

// Headers, beside those of HTTP.
const (
	HeaderKey       = "Idempotency-Key"
	HeaderReplayed  = "Idempotent-Replayed"
	HeaderTimeout   = "Request-Timeout" // milliseconds: nothing is committed after them
	HeaderTenant    = "Ledger-Tenant"   // must be the token's; sent so that a wrong token does nothing
	HeaderPrincipal = "Ledger-Principal"
	HeaderTool      = "Ledger-Tool"
	// HeaderOverride: true: the principal that is named may override. It gives
	// nothing that the token has not.
	HeaderOverride = "Ledger-May-Override"
)

// Media types.
const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json"
)

// Limits, of requests and of answers.
const (
	MaxBody   = 1 << 20
	MaxHeader = 64 << 10
	// MaxPage is how many rows a page may have. A page ends earlier when it has
	// MaxPageBytes; one row alone may have more, up to MaxBody.
	MaxPage      = 1000
	DefaultPage  = 100
	MaxPageBytes = 768 << 10
	// MaxTool is how long the name of a tool may be.
	MaxTool = 80
	// MinTimeout and MaxTimeout bound what a Request-Timeout may say.
	MinTimeout = time.Millisecond
	MaxTimeout = time.Minute
	// Grace is how long after its Request-Timeout the commit of a request may
	// become visible: who finds nothing later than that knows that nothing
	// happened.
	Grace = 2 * time.Second
)

// ValidTool reports whether s may name a tool: visible ASCII, at most MaxTool.
func ValidTool(s string) bool {
	return len(s) > 0 && len(s) <= MaxTool && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// IsMedia reports whether a header says once that the body is of the media type
// want, in UTF-8. Two could be understood as either.
func IsMedia(h http.Header, want string) bool {
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == want {
		return true
	}
	got, params, err := mime.ParseMediaType(types[0])
	if err != nil || got != want {
		return false
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// ETag is the strong entity tag of a version.
func ETag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// ParseETag reads what [ETag] writes.
func ParseETag(s string) (int64, bool) {
	text, ok := strings.CutPrefix(s, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	version, err := strconv.ParseInt(text, 10, 64)
	return version, ok && closed && err == nil && version > 0 && ETag(version) == s
}

// Expand puts values into the parameters of a path, in order.
func Expand(path string, values ...string) string {
	var b strings.Builder
	for _, value := range values {
		before, rest, _ := strings.Cut(path, "{")
		_, path, _ = strings.Cut(rest, "}")
		b.WriteString(before)
		b.WriteString(url.PathEscape(value))
	}
	return b.String() + path
}

// Parameters lists the names in the braces of a path.
func Parameters(path string) []string {
	var names []string
	for {
		_, rest, found := strings.Cut(path, "{")
		if !found {
			return names
		}
		name, after, _ := strings.Cut(rest, "}")
		names, path = append(names, name), after
	}
}

// ErrTooLarge is the error for a body beyond [MaxBody].
var ErrTooLarge = fmt.Errorf("the body has more than %d bytes", MaxBody)

// ReadBody reads a body of the length that its header says, -1 if it says none,
// within [MaxBody].
func ReadBody(r io.Reader, length int64) ([]byte, error) {
	if length > MaxBody {
		return nil, ErrTooLarge
	}
	if length >= 0 {
		body := make([]byte, length)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, MaxBody+1))
	if err == nil && len(body) > MaxBody {
		return nil, ErrTooLarge
	}
	return body, err
}

// Decode reads a document that must be exactly a T.
func Decode[T any](d *strictjson.Decoder[T], doc []byte) (T, []fault.Issue) {
	var out T
	v, err := strictjson.Check(doc)
	if err != nil {
		return out, []fault.Issue{{Path: []any{}, Code: "invalid_json", Message: "the body is not JSON: " + err.Error()}}
	}
	return out, d.Decode(v, &out)
}
