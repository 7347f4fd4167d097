package restclient_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restclient/internal/faulty"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

var (
	acme     = must(access.ParseTenant("acme"))
	usd      = must(money.ParseCurrency("USD"))
	customer = must(customers.ParseID("CUST-00001"))
)

const (
	opening = 100_00
	amount  = 10_00
)

// opened is a store with one customer.
func opened(t testing.TB) *memory.Store {
	t.Helper()
	s := memory.New()
	open(t, s, customer, opening)
	return s
}

func open(t testing.TB, s ports.Ledger, id customers.ID, minor int64) {
	t.Helper()
	_, err := s.Do(t.Context(), asked("open-"+id.String()), customers.Open{
		ID: id, Profile: customers.Profile{Name: "Canary Name", Email: "canary@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(minor, usd), CreatedAt: time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func asked(key string) operation.Operation {
	return operation.Operation{
		ID: system.IDs{}.NewID(), Tenant: acme, Principal: "bot", Tool: "trigger_refund", Key: must(operation.ParseKey(key)),
		At: time.Now().UTC().Truncate(time.Millisecond),
	}
}

func refund(id customers.ID, minor int64) refunds.Trigger {
	return refunds.Trigger{Request: refunds.Request{Customer: id, Amount: money.FromMinor(minor, usd), Reason: must(refunds.ParseReason("Canary reason: arrived broken."))}}
}

func balance(t testing.TB, s ports.Ledger, id customers.ID) int64 {
	t.Helper()
	v, err := s.Load(t.Context(), acme, id.Ref())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := ledger.Get[customers.Account](v, id.Ref())
	return a.Balance().Minor()
}

// said is the outcome of a call in a word.
func said(o ledger.Outcome, err error) string {
	switch f := fault.Of(err); {
	case err == nil && o.Replayed:
		return "replayed"
	case err == nil:
		return "done"
	case f == nil:
		return "error"
	default:
		return f.Code.String() + "/" + f.Reason
	}
}

const (
	unreachable = "BACKEND_UNAVAILABLE/ledger_unreachable"
	unknown     = "OUTCOME_UNKNOWN/outcome_unknown"
	unreliable  = "BACKEND_UNAVAILABLE/ledger_answer_invalid"

	shutOut       = "BACKEND_UNAVAILABLE/ledger_credentials_refused"
	misunderstood = "BACKEND_UNAVAILABLE/ledger_request_refused"
)

// callTime is the time of a call in these tests: short, but long enough to know
// for sure that something did not happen.
const callTime = 5500 * time.Millisecond

func exceeds(d time.Duration) bool { return d > callTime+callTime/10 }

// both defects at once: one for writes, one for reads.
func both(writes, reads faulty.Defect) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if r.Method == http.MethodPost {
			writes(s, w, r, n)
		} else {
			reads(s, w, r, n)
		}
	}
}

func TestWritesToAFaultyService(t *testing.T) {
	const problem, text = "application/problem+json", "text/html"
	unavailable := `{"status":503,"code":"BACKEND_UNAVAILABLE","reason":"busy","detail":"Busy.","retryable":true}`
	internal := `{"status":500,"code":"INTERNAL","reason":"internal","detail":"Internal error.","retryable":false}`
	running := `{"status":409,"code":"CONFLICT","reason":"operation_running","detail":"It runs.","retryable":true}`
	inProgress := `{"status":409,"code":"CONFLICT","reason":"in_progress","detail":"It runs.","retryable":true}`
	decided := `{"status":409,"code":"CONFLICT","reason":"already_decided","detail":"It is final.","retryable":false}`
	suspended := `{"status":422,"code":"POLICY_VIOLATION","reason":"account_suspended","detail":"Suspended.","retryable":false}`
	nowhere := `{"status":404,"code":"NOT_FOUND","reason":"no_such_resource","detail":"x","retryable":false}`
	nobody := `{"status":401,"reason":"token","detail":"x"}`
	limited := `{"status":429,"code":"BACKEND_UNAVAILABLE","reason":"rate_limited","detail":"Slow down.","retryable":true}`
	exceeded := `{"status":422,"code":"POLICY_VIOLATION","reason":"balance_exceeded","detail":"Too much.","retryable":false,"details":{"requested":10,"available":1,"currency":"USD"}}`
	stuck := callTime + time.Second
	for name, tt := range map[string]struct {
		defect faulty.Defect
		want   string
		times  int64 // how often it was executed
		posts  int   // how often it was sent
	}{
		"none":                                         {faulty.Good, "done", 1, 1},
		"it loses one reply after the commit":          {faulty.Writes(faulty.First(1, faulty.LosesReplies)), "replayed", 1, 2},
		"it loses every reply after the commit":        {faulty.Writes(faulty.LosesReplies), "replayed", 1, 3},
		"it loses one request":                         {faulty.Writes(faulty.First(1, faulty.LosesRequests)), "done", 1, 2},
		"it loses every request":                       {faulty.Writes(faulty.LosesRequests), unreachable, 0, 3},
		"it loses every reply, and can not be asked":   {both(faulty.LosesReplies, faulty.LosesRequests), unknown, 1, 3},
		"it loses every request, and can not be asked": {faulty.LosesRequests, unknown, 0, 3},
		"it applies twice":                             {faulty.Writes(faulty.AppliesTwice), "done", 2, 1}, // only the contract kit can see it
		"it ignores keys":                              {faulty.Writes(faulty.IgnoresKeys), "done", 1, 1},
		"it ignores keys and loses a reply":            {faulty.Writes(firstLost), "done", 2, 2},
		"200 with an error body":                       {faulty.Writes(faulty.Answers(200, "application/json", `{"error":"no"}`)), unreachable, 0, 1},
		"200 with an error body after the commit":      {faulty.Writes(faulty.AnswersAfter(200, "application/json", `{"error":"no"}`)), "replayed", 1, 1},
		"201 without a body":                           {faulty.Writes(faulty.AnswersAfter(201, "application/json", ``)), "replayed", 1, 1},
		"202":                                          {faulty.Writes(faulty.AnswersAfter(202, "application/json", `{}`)), "replayed", 1, 1},
		"another media type":                           {faulty.Writes(faulty.Sets("Content-Type", text)), "replayed", 1, 1},
		"a truncated answer":                           {faulty.Writes(faulty.Truncates), "replayed", 1, 1},
		"a huge answer":                                {faulty.Writes(faulty.IsHuge), "replayed", 1, 1},
		"a trickled answer":                            {faulty.Writes(faulty.Trickles(50 * time.Millisecond)), "replayed", 1, 1},
		"a slow answer":                                {faulty.Writes(faulty.SlowToAnswer(stuck)), "replayed", 1, 1},
		"a slow service that does it too late":         {faulty.Writes(faulty.SlowToBegin(stuck)), unreachable, 0, 1},
		"a service that is slow in all":                {both(faulty.SlowToAnswer(stuck), faulty.SlowToBegin(stuck)), unknown, 1, 1},
		"a redirect":                                   {faulty.Writes(faulty.Redirects("http://127.0.0.1:1")), unreachable, 0, 1},
		"500 without a commit":                         {faulty.Writes(faulty.Answers(500, problem, internal)), unreachable, 0, 1},
		"500 after the commit":                         {faulty.Writes(faulty.AnswersAfter(500, problem, internal)), "replayed", 1, 1},
		"503 once":                                     {faulty.Writes(faulty.First(1, faulty.Answers(503, problem, unavailable))), "done", 1, 2},
		"503 always":                                   {faulty.Writes(faulty.Answers(503, problem, unavailable)), unreachable, 0, 3},
		"503 after the commit":                         {faulty.Writes(faulty.AnswersAfter(503, problem, unavailable)), "replayed", 1, 3},
		"502 of a gateway after the commit":            {faulty.Writes(faulty.AnswersAfter(502, text, `<html>`)), "replayed", 1, 3},
		"504 of a gateway once":                        {faulty.Writes(faulty.First(1, faulty.Answers(504, text, `<html>`))), "done", 1, 2},
		"404 of a gateway":                             {faulty.Answers(404, text, `<html>`), unknown, 0, 1},
		"409 while it runs, once":                      {faulty.Writes(faulty.First(1, faulty.Answers(409, problem, running, "Retry-After", "1"))), "done", 1, 2},
		"409 of a reason of its own, once":             {faulty.Writes(faulty.First(1, faulty.Answers(409, problem, inProgress, "Retry-After", "1"))), "done", 1, 2},
		"409 of a reason of its own, for ever":         {faulty.Writes(faulty.Answers(409, problem, inProgress)), unknown, 0, 3},
		"409 of no reason, once":                       {faulty.Writes(faulty.First(1, faulty.Answers(409, text, "", "Retry-After", "1"))), "done", 1, 2},
		"409 of no reason, for ever":                   {faulty.Writes(faulty.Answers(409, text, "")), unknown, 0, 3},
		"409 that is final":                            {faulty.Writes(faulty.Answers(409, problem, decided)), "CONFLICT/already_decided", 0, 1},
		"503 after the commit, and then a refusal":     {faulty.Writes(firstThen(faulty.AnswersAfter(503, problem, unavailable), 422, suspended)), "replayed", 1, 2},
		"429 after the commit, and then a refusal":     {faulty.Writes(firstThen(faulty.AnswersAfter(429, problem, limited), 422, suspended)), "replayed", 1, 2},
		"503 after the commit, and then 401":           {faulty.Writes(firstThen(faulty.AnswersAfter(503, problem, unavailable), 401, nobody)), "replayed", 1, 2},
		"503 without a commit, and then a refusal":     {faulty.Writes(firstThen(faulty.Answers(503, problem, unavailable), 422, suspended)), "POLICY_VIOLATION/account_suspended", 0, 2},
		"409 for ever":                                 {faulty.Writes(faulty.Answers(409, problem, running)), unknown, 0, 3},
		"429, to wait longer than there is":            {faulty.Writes(faulty.Answers(429, problem, limited, "Retry-After", "60")), unreachable, 0, 1},
		"a refusal":                                    {faulty.Writes(faulty.Answers(422, problem, exceeded)), "POLICY_VIOLATION/balance_exceeded", 0, 1},
		"401":                                          {faulty.Writes(faulty.Answers(401, problem, nobody)), shutOut, 0, 1},
		"a resource that is not there":                 {faulty.Writes(faulty.Answers(404, problem, nowhere)), misunderstood, 0, 1},
		"a refusal that hides words":                   {faulty.Writes(faulty.Answers(422, problem, strings.Replace(suspended, "Suspended.", `Do \u2066this`, 1))), unreachable, 0, 1},
		"a refusal that goes on and on":                {faulty.Writes(faulty.Answers(422, problem, strings.Replace(suspended, "Suspended.", strings.Repeat("x", 5000), 1))), unreachable, 0, 1},
		"a refusal in no currency":                     {faulty.Writes(faulty.Answers(422, problem, strings.Replace(exceeded, "USD", "US dollars", 1))), unreachable, 0, 1},
		"half a refusal":                               {faulty.Writes(halfOf(422, problem, exceeded)), unreachable, 0, 1},
		"a refusal after a reply was lost": {faulty.Writes(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			lostThen(422, problem, exceeded)(s, w, r, n)
		}), "replayed", 1, 2},
		"a refusal after a request was lost": {faulty.Writes(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			droppedThen(422, problem, exceeded)(s, w, r, n)
		}), "POLICY_VIOLATION/balance_exceeded", 0, 2},
		"another tenant": {faulty.Changes(`"acme"`, `"globex"`), unknown, 1, 1},
		"another tenant, in the answer to a write": {faulty.Writes(faulty.Changes(`"acme"`, `"globex"`)), "replayed", 1, 1},
		"another currency":                         {faulty.Writes(faulty.Changes(`"USD"`, `"EUR"`)), "replayed", 1, 1},
		"another customer":                         {faulty.Writes(faulty.Changes(customer.String(), "CUST-00002")), "replayed", 1, 1},
		"another amount":                           {faulty.Writes(faulty.Changes(`"amountMinor":1000`, `"amountMinor":999`)), "replayed", 1, 1},
		"a number as a text":                       {faulty.Writes(faulty.Changes(`"amountMinor":1000`, `"amountMinor":"1000"`)), "replayed", 1, 1},
		"a member twice":                           {faulty.Writes(faulty.Changes(`"amountMinor":1000`, `"amountMinor":1000,"amountMinor":1000`)), "replayed", 1, 1},
		"a member that nobody declared":            {faulty.Writes(faulty.Changes(`"amountMinor":1000`, `"amountMinor":1000,"note":"x"`)), "replayed", 1, 1},
		"an answer that is not UTF-8":              {faulty.Writes(faulty.Changes(`Canary`, "\xff")), "replayed", 1, 1},
		"an old answer":                            {faulty.Writes(faulty.Changes(`"k"`, `"j"`)), "replayed", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := opened(t)
				bad := faulty.New(newServer(t, store), tt.defect)
				client, _ := piped(t, bad, func(o *restclient.Options) { o.Timeout = callTime })
				began := time.Now()
				got := said(client.Do(t.Context(), asked("k"), refund(customer, amount)))
				took := time.Since(began)
				if got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				posts := bad.Requests(http.MethodPost)
				if len(posts) != tt.posts {
					t.Errorf("it was sent %d times, want %d", len(posts), tt.posts)
				}
				for _, p := range posts {
					if p.Key != "k" || p.Body != posts[0].Body {
						t.Errorf("it was sent again with another key or body: %s %s", p.Key, p.Body)
					}
				}
				if n := (opening - balance(t, store, customer)) / amount; n != tt.times {
					t.Errorf("it was executed %d times, want %d", n, tt.times)
				}
				if exceeds(took) {
					t.Errorf("it took %s of %s", took, callTime)
				}
				t.Logf("%s after %s, %d requests", got, took.Round(time.Millisecond), len(posts)+len(bad.Requests(http.MethodGet)))
			})
		})
	}
}

// firstLost ignores keys, and loses the first reply.
func firstLost(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
	if n == 1 {
		faulty.IgnoresKeys(s, httptest.NewRecorder(), r, n)
		panic(http.ErrAbortHandler)
	}
	faulty.IgnoresKeys(s, w, r, n)
}

// lostThen loses the first reply and answers something from then on.
func lostThen(status int, contentType, body string) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			faulty.LosesReplies(s, w, r, n)
		}
		faulty.Answers(status, contentType, body)(s, w, r, n)
	}
}

// firstThen has a defect first and refuses from then on.
func firstThen(d faulty.Defect, status int, body string) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if n > 1 {
			d = faulty.Answers(status, "application/problem+json", body)
		}
		d(s, w, r, n)
	}
}

// droppedThen loses the first request and answers something from then on.
func droppedThen(status int, contentType, body string) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			faulty.LosesRequests(s, w, r, n)
		}
		faulty.Answers(status, contentType, body)(s, w, r, n)
	}
}

// halfOf answers half of something.
func halfOf(status int, contentType, body string) faulty.Defect {
	return func(_ *faulty.Server, w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func serveQuietly(t testing.TB, h http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelDebug)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestReadsFromAFaultyService(t *testing.T) {
	stuck := callTime + time.Second
	for name, tt := range map[string]struct {
		defect faulty.Defect
		want   string
		gets   int
	}{
		"none":                       {faulty.Good, "done", 1},
		"it loses one reply":         {faulty.First(1, faulty.LosesReplies), "done", 2},
		"it loses every reply":       {faulty.LosesReplies, unreachable, 3},
		"half an answer, once":       {faulty.First(1, faulty.Truncates), "done", 2},
		"half an answer":             {faulty.Truncates, unreachable, 3},
		"a huge answer":              {faulty.IsHuge, unreliable, 1},
		"a slow service":             {faulty.SlowToBegin(stuck), unreachable, 1},
		"a trickled answer":          {faulty.Trickles(50 * time.Millisecond), unreachable, 1},
		"a stale ETag":               {faulty.Sets("ETag", `"7"`), unreliable, 1},
		"no ETag":                    {faulty.Sets("ETag", ``), unreliable, 1},
		"another media type":         {faulty.Sets("Content-Type", "text/plain"), unreliable, 1},
		"another tenant":             {faulty.Changes(`"acme"`, `"globex"`), unreliable, 1},
		"another customer":           {faulty.Changes(customer.String(), "CUST-00002"), unreliable, 1},
		"a balance that is not":      {faulty.Changes(`"balanceMinor":10000,"created`, `"balanceMinor":10001,"created`), unreliable, 1},
		"a currency that is not":     {faulty.Changes(`"USD"`, `"XXX1"`), unreliable, 1},
		"a status that is not":       {faulty.Changes(`"active"`, `"fine"`), unreliable, 1},
		"a name that is too long":    {faulty.Changes(`Canary Name`, strings.Repeat("x", customers.MaxName+1)), unreliable, 1},
		"a name of two lines":        {faulty.Changes(`Canary Name`, `Canary\nName`), unreliable, 1},
		"a name with a hidden text":  {faulty.Changes(`Canary Name`, "Canary \U000e0041\U000e0042Name"), unreliable, 1},
		"a name turned round":        {faulty.Changes(`Canary Name`, "Canary \u202eemaN"), unreliable, 1},
		"no name":                    {faulty.Changes(`Canary Name`, ``), unreliable, 1},
		"an address that is none":    {faulty.Changes(`canary@example.com`, `canary`), unreliable, 1},
		"an address of two":          {faulty.Changes(`canary@example.com`, `a@example.com, b@example.com`), unreliable, 1},
		"an address too long":        {faulty.Changes(`canary@example.com`, strings.Repeat("x", customers.MaxEmail)+`@example.com`), unreliable, 1},
		"a profile that was erased":  {faulty.Changes(`Canary Name`, ``, `canary@example.com`, ``), "done", 1},
		"a problem that hides words": {faulty.Answers(404, "application/problem+json", `{"status":404,"code":"NOT_FOUND","reason":"customer_not_found","detail":"x\u202e"}`), unreliable, 1},
		"a problem without end":      {faulty.Answers(404, "application/problem+json", `{"status":404,"code":"NOT_FOUND","reason":"customer_not_found","detail":"`+strings.Repeat("x", 5000)+`"}`), unreliable, 1},
		"an error body":              {faulty.Answers(200, "application/json", `{"error":"x"}`), unreliable, 1},
		"a page of a gateway":        {faulty.Answers(200, "text/html", `<html>`), unreliable, 1},
		"404 of a gateway":           {faulty.Answers(404, "text/html", `<html>`), unreliable, 1},
		"204":                        {faulty.Answers(204, "text/html", ``), unreliable, 1},
		"a redirect":                 {faulty.Redirects("http://127.0.0.1:1"), unreliable, 1},
		"500":                        {faulty.Answers(500, "text/html", `<html>`), unreachable, 1},
		"502 once":                   {faulty.First(1, faulty.Answers(502, "text/html", `<html>`)), "done", 2},
		"503, to wait a second":      {faulty.First(1, faulty.Answers(503, "text/html", ``, "Retry-After", "1")), "done", 2},
		"503, to wait too long":      {faulty.Answers(503, "text/html", ``, "Retry-After", "3600"), unreachable, 1},
		"429 always":                 {faulty.Answers(429, "text/html", ``), unreachable, 3},
		"401":                        {faulty.Answers(401, "application/problem+json", `{"status":401,"reason":"token","detail":"x"}`), shutOut, 1},
		"401 of a gateway":           {faulty.Answers(401, "text/html", `<html>`), shutOut, 1},
		"400":                        {faulty.Answers(400, "application/problem+json", `{"status":400,"code":"INVALID_INPUT","reason":"invalid_input","detail":"x"}`), misunderstood, 1},
		"400 of a gateway":           {faulty.Answers(400, "text/html", `<html>`), unreliable, 1},
		"a refusal by rules":         {faulty.Answers(422, "application/problem+json", `{"status":422,"code":"POLICY_VIOLATION","reason":"account_suspended","detail":"x"}`), misunderstood, 1},
		"415":                        {faulty.Answers(415, "application/problem+json", `{"status":415,"code":"INVALID_INPUT","reason":"unsupported_media_type","detail":"x"}`), misunderstood, 1},
		"403 with a token in it":     {faulty.Answers(403, "application/problem+json", `{"status":403,"reason":"scope","required":"customer:read","detail":"acme`+tokenWord+`"}`), unreliable, 1},
		"403":                        {faulty.Answers(403, "application/problem+json", `{"status":403,"reason":"scope","required":"customer:read","detail":"x"}`), shutOut, 1},
		"the status of another":      {faulty.Answers(404, "application/problem+json", `{"status":422,"code":"NOT_FOUND","reason":"customer_not_found","detail":"x"}`), unreliable, 1},
		"a code that nobody knows":   {faulty.Answers(404, "application/problem+json", `{"status":404,"code":"GONE","reason":"customer_not_found","detail":"x"}`), unreliable, 1},
		"no such resource":           {faulty.Answers(404, "application/problem+json", `{"status":404,"code":"NOT_FOUND","reason":"no_such_resource","detail":"x"}`), misunderstood, 1},
		"a header beyond all bounds": {faulty.Sets("X-Long", strings.Repeat("x", 80<<10)), unreachable, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				bad := faulty.New(newServer(t, opened(t)), tt.defect)
				client, _ := piped(t, bad, func(o *restclient.Options) { o.Timeout = callTime })
				began := time.Now()
				v, err := client.Load(t.Context(), acme, customer.Ref())
				took := time.Since(began)
				if got := said(ledger.Outcome{}, err); got != tt.want {
					t.Errorf("got %s (%v), want %s", got, err, tt.want)
				}
				if err == nil {
					if a, ok := ledger.Get[customers.Account](v, customer.Ref()); !ok || a.Balance().Minor() != opening {
						t.Errorf("got %+v", a)
					}
				} else if strings.Contains(err.Error(), tokenWord) {
					t.Errorf("the error holds the token: %v", err)
				}
				if n := len(bad.Requests(http.MethodGet)); n != tt.gets {
					t.Errorf("it was asked %d times, want %d", n, tt.gets)
				}
				if exceeds(took) {
					t.Errorf("it took %s of %s", took, callTime)
				}
			})
		})
	}
}

// No token, no body and nothing of a person is in a log line or an error, and
// another host gets nothing at all.
func TestSecretsStayHere(t *testing.T) {
	t.Parallel()
	other := faulty.New(http.NotFoundHandler(), faulty.Good)
	elsewhere := serveQuietly(t, other)
	for name, defect := range map[string]faulty.Defect{
		"a redirect":   faulty.Redirects(elsewhere.URL),
		"lost replies": faulty.LosesReplies,
		"odd answers":  faulty.Changes(`"amountMinor":1000`, `"amountMinor":"acme`+tokenWord+`"`),
		"an echo":      func(_ *faulty.Server, w http.ResponseWriter, r *http.Request, _ int) { echo(w, r) },
		"an echo as an error": func(_ *faulty.Server, w http.ResponseWriter, r *http.Request, _ int) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"status":422,"code":"POLICY_VIOLATION","reason":"echo","detail":%q,"retryable":false}`, r.Header.Get("Authorization"))
		},
		"an echo as a member": faulty.Changes(`"command"`, `"Bearer acme`+tokenWord+`":1,"command"`, `"email"`, `"canary@":1,"email"`),
		"an echo as a header": func(_ *faulty.Server, w http.ResponseWriter, r *http.Request, _ int) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s %s\r\n\r\n", r.Header.Get("Authorization"), r.URL.Path)
				_ = conn.Close()
			}
		},
		"an echo as nothing": func(_ *faulty.Server, w http.ResponseWriter, r *http.Request, _ int) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "%s %s\r\n", r.Header.Get("Authorization"), r.URL.Path)
				_ = conn.Close()
			}
		},
		"a refused call": faulty.Answers(401, "application/problem+json", `{"status":401,"reason":"token","detail":"acme`+tokenWord+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines logged
			server := serveQuietly(t, faulty.New(newServer(t, opened(t)), defect))
			client := newClient(t, server.URL, "acme", func(o *restclient.Options) {
				o.Timeout, o.Log = time.Second, slog.New(slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			_, err := client.Do(t.Context(), asked("k"), refund(customer, amount))
			_, err2 := client.Load(t.Context(), acme, customer.Ref())
			everything := fmt.Sprint(lines.String(), err, err2)
			for _, secret := range []string{tokenWord, "Bearer", "Canary", "canary@", customer.String()} {
				if strings.Contains(everything, secret) {
					t.Errorf("it shows %q:\n%s", secret, everything)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := len(other.Requests(http.MethodPost)) + len(other.Requests(http.MethodGet)); n > 0 {
			t.Errorf("another host got %d requests", n)
		}
	})
}

// echo answers with all it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = r.Header.Write(w)
	fmt.Fprint(w, r.URL.Path)
}

type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
