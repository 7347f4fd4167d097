package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refundledger/refundledger/evals/internal/backend"
	"github.com/refundledger/refundledger/evals/internal/expect"
	"github.com/refundledger/refundledger/evals/internal/jsontree"
	"github.com/refundledger/refundledger/evals/internal/session"
	"github.com/refundledger/refundledger/evals/internal/trajectory"
)

// defaultProtocol is the last revision with sessions. Raw lines then need no
// envelope of their own, and a case may still ask for another.
const defaultProtocol = "2025-11-25"

// runner runs cases.
type runner struct {
	server  string // path of the binary
	cases   string // path of the folder of the cases
	backend backend.Backend
	jobs    int
	http    bool // the server is reached over HTTP
}

// result is what came of a case.
type result struct {
	Case    *trajectory.Case
	Err     error  // nil: passed
	Skipped string // why it was not run, or ""
	Took    time.Duration
	Logged  string // the server's stderr
}

// all runs the cases, up to jobs at once, and hands on the results in the order
// of the cases, each as soon as it and those before it are there.
func (r runner) all(ctx context.Context, cases []trajectory.Case, each func(result)) {
	results := make([]chan result, len(cases))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	next := make(chan int)
	for range r.jobs {
		go func() {
			for i := range next {
				results[i] <- r.one(ctx, &cases[i])
			}
		}()
	}
	go func() {
		for i := range cases {
			next <- i
		}
		close(next)
	}()
	for _, c := range results {
		each(<-c)
	}
}

func (r runner) one(ctx context.Context, c *trajectory.Case) result {
	if c.Needs == "durable" && !r.backend.Durable() {
		return result{Case: c, Skipped: "needs a store that outlives the server"}
	}
	if r.http && slices.ContainsFunc(c.Steps, func(s trajectory.Step) bool { return s.Raw != nil }) {
		return result{Case: c, Skipped: "sends lines, which is for stdio"}
	}
	begun := time.Now()
	folder := ""
	if c.Data != "" {
		folder = filepath.Join(r.cases, c.Subject, "data", c.Data)
	}
	s, err := r.backend.Fresh(folder, c.Env)
	if err != nil {
		return result{Case: c, Err: err}
	}
	p := play{runner: r, c: c, store: s, env: environment(s.Env(), c.Env), vars: expect.Variables{}}
	err = errors.Join(p.run(ctx), s.Discard())
	return result{Case: c, Err: err, Took: time.Since(begun), Logged: p.logged.String()}
}

// play is one case being run.
type play struct {
	runner
	c      *trajectory.Case
	store  backend.Store
	env    map[string]string
	server *session.Session
	vars   expect.Variables
	heard  strings.Builder // stdout of all servers so far
	logged strings.Builder // stderr of all servers so far
}

func (p *play) run(ctx context.Context) error {
	if p.c.NoStart != "" {
		says, err := session.RefuseToStart(ctx, p.runner.server, p.env)
		p.logged.WriteString(says)
		if err == nil && !regexp.MustCompile(p.c.NoStart).MatchString(says) {
			err = &expect.Mismatch{Want: fmt.Sprintf("stderr like %q", p.c.NoStart), Got: expect.Shorten(says)}
		}
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	err := p.steps(ctx)
	if closing := p.stop(); err == nil && closing != nil {
		err = fmt.Errorf("afterwards: %w", closing)
	}
	if err == nil {
		err = p.neverSaid()
	}
	return err
}

func (p *play) start(ctx context.Context) (err error) {
	protocol := p.c.Protocol
	if protocol == "" {
		protocol = defaultProtocol
	}
	p.server, err = session.Start(ctx, p.runner.server, protocol, p.http, p.env)
	return err
}

func (p *play) stop() error {
	err := p.server.Close()
	p.heard.WriteString(p.server.Heard())
	p.logged.WriteString(p.server.Logged())
	return err
}

func (p *play) steps(ctx context.Context) error {
	before, err := p.look(ctx)
	if err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	for i := range p.c.Steps {
		err := p.step(ctx, &p.c.Steps[i])
		if err == nil {
			err = p.server.Violation()
		}
		if err != nil {
			return fmt.Errorf("step %d%s: %w", i+1, note(p.c.Steps[i].Note), err)
		}
	}
	after, err := p.look(ctx)
	if err == nil {
		err = p.audit(before, after)
	}
	if err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

func note(text string) string {
	if text == "" {
		return ""
	}
	return " (" + strings.TrimSuffix(text, ".") + ")"
}

func (p *play) step(ctx context.Context, s *trajectory.Step) error {
	switch {
	case s.Tools != nil:
		return p.offered(s)
	case s.Restart != nil:
		if err := p.stop(); err != nil {
			return err
		}
		p.env = environment(p.env, s.Restart.Env)
		return p.start(ctx)
	case s.Raw != nil:
		return p.raw(ctx, s)
	case s.Parallel != nil:
		return p.calls(ctx, s, s.Parallel)
	}
	return p.calls(ctx, s, []trajectory.Step{*s})
}

func (p *play) offered(s *trajectory.Step) error {
	want, got := fmt.Sprint(sorted(s.Tools)), fmt.Sprint(p.server.Tools())
	if want != got {
		return &expect.Mismatch{Want: "the tools " + want, Got: got}
	}
	return nil
}

func (p *play) raw(ctx context.Context, s *trajectory.Step) error {
	line, id := s.Raw.Text, jsontree.Quote(s.ID)
	if s.Raw.Kind == jsontree.Object {
		var err error
		if line, err = p.fill(s.Raw); err != nil {
			return err
		}
		if n := s.Raw.Get("id"); n != nil {
			id = n.Raw
		}
	}
	if s.Silent {
		id = ""
	}
	answer, err := p.server.Send(ctx, line, id)
	if err != nil || s.Silent {
		return err
	}
	tool := ""
	if s.Raw.Get("method").Str() == "tools/call" {
		tool = s.Raw.Get("params").Get("name").Str()
	}
	return p.vars.Check(s, answer, tool, p.server.Changes(tool), "")
}

// call is one call of a group, and what came back.
type call struct {
	step   *trajectory.Step
	key    string
	args   string
	meta   map[string]string
	answer expect.Answer
	err    error
}

// calls makes the calls of a step, all at once if it is a parallel group, and
// looks at the answers in the order of the calls.
func (p *play) calls(ctx context.Context, s *trajectory.Step, steps []trajectory.Step) error {
	all, err := p.prepare(steps)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for i := range all {
		if s.Parallel == nil {
			p.do(ctx, &all[i])
			continue
		}
		group.Go(func() { p.do(ctx, &all[i]) })
	}
	group.Wait()
	answers := make([]expect.Answer, len(all))
	for i, c := range all {
		err := c.err
		if err == nil {
			err = p.vars.Check(c.step, c.answer, c.step.Call, p.server.Changes(c.step.Call), c.key)
		}
		if err != nil {
			if len(all) > 1 {
				return fmt.Errorf("call %d of %d: %w", i+1, len(all), err)
			}
			return err
		}
		answers[i] = c.answer
	}
	if s.Tally != nil {
		if err := expect.Tally(s.Tally, answers); err != nil {
			return err
		}
	}
	if s.Distinct != "" {
		return expect.Distinct(s.Distinct, answers)
	}
	return nil
}

// prepare spells out every call before the first is made.
func (p *play) prepare(steps []trajectory.Step) ([]call, error) {
	var all []call
	for i := range steps {
		s := &steps[i]
		for n := range max(1, s.Repeat) {
			c := call{step: s, key: strings.ReplaceAll(s.Key, "{n}", strconv.Itoa(n+1))}
			var err error
			if s.WithText != nil {
				c.args = *s.WithText
			} else if c.args, err = p.fill(s.With); err != nil {
				return nil, err
			}
			if trajectory.IsVariable(s.Key) {
				known, ok := p.vars[s.Key]
				if !ok {
					return nil, fmt.Errorf("%s has no value yet", s.Key)
				}
				c.key = known.Text
			}
			if c.meta, err = p.meta(s, c.key); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// meta is the _meta of a call: each member's name and JSON text.
func (p *play) meta(s *trajectory.Step, key string) (map[string]string, error) {
	meta := map[string]string{}
	if key != "" {
		meta[expect.KeyMeta] = jsontree.Quote(key)
	}
	if s.Meta == nil {
		return meta, nil
	}
	for _, m := range s.Meta.Members {
		text, err := p.fill(m.Value)
		if err != nil {
			return nil, err
		}
		meta[m.Name] = text
	}
	return meta, nil
}

func (p *play) do(ctx context.Context, c *call) {
	if c.step.WithText == nil {
		c.answer, c.err = p.server.Call(ctx, c.step.Call, c.args, c.meta)
		return
	}
	c.answer, c.err = p.server.CallRaw(ctx, c.step.Call, c.args, c.meta)
}

// fill writes what is sent: variables by their values, long texts in full.
func (p *play) fill(n *jsontree.Node) (string, error) {
	var missing error
	text := n.Compact(func(n *jsontree.Node) (string, bool) {
		if n.Kind == jsontree.String && trajectory.IsVariable(n.Text) {
			known, ok := p.vars[n.Text]
			if !ok {
				missing = fmt.Errorf("%s has no value yet", n.Text)
				return "", true
			}
			return known.Raw, true
		}
		if r := n.Get("$repeat"); r != nil && len(n.Members) == 1 && len(r.Elements) == 2 {
			times, err := strconv.Atoi(r.Elements[1].Raw)
			if err != nil {
				missing = fmt.Errorf("$repeat is [text, times], not %s", r.Raw)
				return "", true
			}
			return jsontree.Quote(strings.Repeat(r.Elements[0].Text, times)), true
		}
		return "", false
	})
	return text, missing
}
