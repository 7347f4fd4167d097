// Package faulty makes a good service bad, for tests: each [Defect] is a way in
// which services and the networks before them have been wrong.
package faulty

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is a request as it came in.
type Request struct {
	Method, Path, Key string
	Header            http.Header
	Body              string
}

// Server is a service with a defect. It notes all it is asked.
type Server struct {
	service http.Handler
	defect  Defect

	mu       sync.Mutex
	requests []Request
	first    *httptest.ResponseRecorder // the first answer to a write
}

// Defect answers a request in its own way. n counts the requests of the same
// method, from 1; serve is the good service.
type Defect func(s *Server, w http.ResponseWriter, r *http.Request, n int)

// New puts a defect before a service.
func New(service http.Handler, d Defect) *Server { return &Server{service: service, defect: d} }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Clone(), string(body)})
	n := 0
	for _, q := range s.requests {
		if q.Method == r.Method {
			n++
		}
	}
	s.mu.Unlock()
	s.defect(s, w, r, n)
}

// Requests returns all requests of a method.
func (s *Server) Requests(method string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Request
	for _, r := range s.requests {
		if r.Method == method {
			list = append(list, r)
		}
	}
	return list
}

// answered runs the good service and keeps its answer back.
func (s *Server) answered(r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.service.ServeHTTP(rec, r)
	return rec
}

func send(w http.ResponseWriter, rec *httptest.ResponseRecorder, change ...func(body string) string) {
	body := rec.Body.String()
	for _, c := range change {
		body = c(body)
	}
	maps.Copy(w.Header(), rec.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(rec.Code)
	_, _ = io.WriteString(w, body)
}

func drop() { panic(http.ErrAbortHandler) }

// Good has no defect.
func Good(s *Server, w http.ResponseWriter, r *http.Request, _ int) { s.service.ServeHTTP(w, r) }

// Writes has a defect in its writes alone.
func Writes(d Defect) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, n int) {
		if r.Method == http.MethodPost {
			d(s, w, r, n)
			return
		}
		Good(s, w, r, n)
	}
}

// Reads has a defect in its reads alone.
func Reads(d Defect) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, n int) {
		if r.Method == http.MethodGet {
			d(s, w, r, n)
			return
		}
		Good(s, w, r, n)
	}
}

// First has a defect in the first requests of a method alone.
func First(times int, d Defect) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, n int) {
		if n <= times {
			d(s, w, r, n)
			return
		}
		Good(s, w, r, n)
	}
}

// LosesRequests ends the connection before anything is done.
func LosesRequests(*Server, http.ResponseWriter, *http.Request, int) { drop() }

// LosesReplies does it and ends the connection.
func LosesReplies(s *Server, _ http.ResponseWriter, r *http.Request, _ int) {
	s.answered(r)
	drop()
}

// AppliesTwice does it again under a key of its own.
func AppliesTwice(s *Server, w http.ResponseWriter, r *http.Request, n int) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec := s.answered(r)
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", "again", n))
	s.answered(again)
	send(w, rec)
}

// IgnoresKeys does everything anew, and says it was the key that was asked.
func IgnoresKeys(s *Server, w http.ResponseWriter, r *http.Request, n int) {
	key := r.Header.Get("Idempotency-Key")
	own := fmt.Sprintf("own-%d", n)
	r.Header.Set("Idempotency-Key", own)
	send(w, s.answered(r), func(body string) string { return strings.ReplaceAll(body, `"`+own+`"`, `"`+key+`"`) })
}

// Answers does nothing and answers something.
func Answers(status int, contentType, body string, header ...string) Defect {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request, _ int) {
		answer(w, status, contentType, body, header)
	}
}

// AnswersAfter does it, and answers something else.
func AnswersAfter(status int, contentType, body string, header ...string) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
		s.answered(r)
		answer(w, status, contentType, body, header)
	}
}

func answer(w http.ResponseWriter, status int, contentType, body string, header []string) {
	w.Header().Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Changes changes what it answers: each text into the one that follows it.
func Changes(oldNew ...string) Defect {
	replacer := strings.NewReplacer(oldNew...)
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
		send(w, s.answered(r), replacer.Replace)
	}
}

// LeavesOut answers as a thin backend does, which keeps less: members are left
// out of invoices, and the currency of sums and of what vendors are owed with
// that of invoices.
func LeavesOut(members ...string) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
		send(w, s.answered(r), func(body string) string {
			var document any
			d := json.NewDecoder(strings.NewReader(body))
			d.UseNumber()
			if err := d.Decode(&document); err != nil {
				return body
			}
			leaveOut(document, "", members)
			thin, err := json.Marshal(document)
			if err != nil {
				panic(err) // it was read just now
			}
			return string(thin)
		})
	}
}

// leaveOut leaves members out of what is called name in its document.
func leaveOut(document any, name string, members []string) {
	switch x := document.(type) {
	case []any:
		for _, element := range x {
			leaveOut(element, name, members)
		}
	case map[string]any:
		for _, m := range members {
			if x["totalMinor"] != nil && x["normalNumber"] != nil || m == "currency" && (name == "sums" || name == "balances") {
				delete(x, m)
			}
		}
		for name, member := range x {
			leaveOut(member, name, members)
		}
	}
}

// Sets sets a header of what it answers.
func Sets(name, value string) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
		rec := s.answered(r)
		rec.Header().Set(name, value)
		send(w, rec)
	}
}

// SlowToBegin waits before it does anything.
func SlowToBegin(d time.Duration) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, n int) {
		time.Sleep(d)
		Good(s, w, r, n)
	}
}

// SlowToAnswer does it and waits.
func SlowToAnswer(d time.Duration) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
		rec := s.answered(r)
		time.Sleep(d)
		send(w, rec)
	}
}

// Trickles answers a byte at a time.
func Trickles(pause time.Duration) Defect {
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
		rec := s.answered(r)
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		for i := range rec.Body.Len() {
			if _, err := w.Write(rec.Body.Bytes()[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

// Truncates ends the connection in the middle of the answer.
func Truncates(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
	rec := s.answered(r)
	maps.Copy(w.Header(), rec.Header())
	w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	drop()
}

// IsHuge does it and answers without end.
func IsHuge(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
	rec := s.answered(r)
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	spaces := bytes.Repeat([]byte(" "), 64<<10)
	for range 1 << 10 {
		if _, err := w.Write(spaces); err != nil {
			return
		}
	}
}

// Redirects sends to another address.
func Redirects(to string) Defect {
	return func(_ *Server, w http.ResponseWriter, r *http.Request, _ int) {
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
	}
}

// RepeatsItself answers every write as it answered the first.
func RepeatsItself(s *Server, w http.ResponseWriter, r *http.Request, _ int) {
	rec := s.answered(r)
	s.mu.Lock()
	if s.first == nil {
		s.first = rec
	}
	rec = s.first
	s.mu.Unlock()
	send(w, rec)
}
