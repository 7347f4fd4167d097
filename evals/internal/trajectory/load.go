package trajectory

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/evals/internal/jsontree"
)

// Load reads all cases in the folders of fsys, one folder a subject, in the
// order of the files' names. It returns every problem of every file at once,
// each with file, place and case.
func Load(fsys fs.FS) ([]Case, error) {
	files, err := fs.Glob(fsys, "*/*.json")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("there are no case files SUBJECT/*.json")
	}
	var cases []Case
	var problems []error
	owner := map[string]string{}
	for _, file := range files {
		src, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		more, errs := parse(file, src)
		for _, c := range more {
			if first, ok := owner[c.Name]; ok {
				errs = append(errs, fmt.Errorf("%s: the name %q is taken by a case in %s", file, c.Name, first))
			}
			owner[c.Name] = file
		}
		cases = append(cases, more...)
		problems = append(problems, errs...)
	}
	return cases, errors.Join(problems...)
}

func parse(file string, src []byte) (cases []Case, errs []error) {
	root, err := jsontree.Parse(src)
	if err != nil {
		return nil, []error{fmt.Errorf("%s:%w", file, err)}
	}
	if root.Kind != jsontree.Array {
		return nil, []error{fmt.Errorf("%s:%s: a case file is an array of cases, not %s", file, root.At, root.Kind)}
	}
	for _, node := range root.Elements {
		c := Case{Subject: path.Dir(file), File: file}
		problems := node.Decode(&c)
		if len(problems) == 0 {
			place(c.Steps, node.Get("steps"))
			problems = c.check(node)
		}
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s:%s: case %q: %s", file, p.At, node.Get("name").Str(), strings.TrimPrefix(p.Path+": "+p.Says, ": ")))
		}
		cases = append(cases, c)
	}
	return cases, errs
}

// place tells the steps where they stand.
func place(steps []Step, nodes *jsontree.Node) {
	for i := range steps {
		steps[i].At = nodes.Elements[i].At
		place(steps[i].Parallel, nodes.Elements[i].Get("parallel"))
	}
}

// stateless is the first revision without sessions, in which every request
// carries what the client would have to add to a raw line.
const stateless = "2026-07-28"

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	envForm    = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	reasonForm = regexp.MustCompile(`^[A-Z][A-Z_]*/[a-z][a-z0-9_]*$`)
)

// checker collects what the form of the fields alone does not show.
type checker struct {
	problems []*jsontree.Problem
	uses     map[string]int // of variables, by name
	bound    map[string]bool
}

func (k *checker) add(at jsontree.Place, format string, args ...any) {
	k.problems = append(k.problems, &jsontree.Problem{At: at, Says: fmt.Sprintf(format, args...)})
}

func (c *Case) check(node *jsontree.Node) []*jsontree.Problem {
	k := checker{uses: map[string]int{}, bound: map[string]bool{}}
	if !nameForm.MatchString(c.Name) {
		k.add(node.At, "a name is lower-case words joined by hyphens")
	}
	if !strings.HasSuffix(c.Why, ".") {
		k.add(node.At, "why is a sentence and ends with a full stop")
	}
	if c.Needs != "" && c.Needs != "durable" {
		k.add(node.At, `needs is "durable" or absent, not %q`, c.Needs)
	}
	if (c.NoStart == "") == (len(c.Steps) == 0) {
		k.add(node.At, "a case has steps, or no_start")
	}
	if c.Data != "" && !nameForm.MatchString(c.Data) {
		k.add(node.At, "data is lower-case words joined by hyphens")
	}
	k.pattern(node.At, c.NoStart)
	k.env(node.At, c.Env)
	for i := range c.Steps {
		s := &c.Steps[i]
		if (s.Raw != nil || s.WithText != nil) && c.Protocol >= stateless {
			k.add(s.At, "raw lines need a protocol before %s", stateless)
		}
		if s.Restart != nil && c.Needs != "durable" {
			k.add(s.At, `a case with a restart needs "durable"`)
		}
		k.step(s, false)
	}
	for _, name := range slices.Sorted(maps.Keys(c.End)) {
		if b := c.End[name].Balance; b != nil && b.Kind != jsontree.Number {
			k.add(b.At, "a balance is a number, not %s", b.Kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.uses)) {
		if k.uses[name] < 2 {
			k.add(node.At, "%s is used once only, so it says nothing", name)
		}
	}
	return k.problems
}

func (k *checker) env(at jsontree.Place, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envForm.MatchString(name) {
			k.add(at, "%q is no name of an environment variable", name)
		}
	}
}

func (k *checker) pattern(at jsontree.Place, pattern string) *regexp.Regexp {
	re, err := regexp.Compile(pattern)
	if err != nil {
		k.add(at, "%s", err)
	}
	return re
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

func (k *checker) step(s *Step, inGroup bool) {
	if count(s.Call != "", s.Raw != nil, s.Tools != nil, s.Parallel != nil, s.Restart != nil) != 1 {
		k.add(s.At, "a step does exactly one of call, raw, tools, parallel, restart")
		return
	}
	if inGroup && s.Call == "" {
		k.add(s.At, "a parallel group holds calls only")
	}
	k.sent(s)
	for i := range s.Parallel {
		k.step(&s.Parallel[i], true)
	}
	k.expected(s, inGroup)
	s.Pattern = k.pattern(s.At, s.Says)
}

// sent checks what a step sends.
func (k *checker) sent(s *Step) {
	if s.Call == "" {
		if s.With != nil || s.WithText != nil || s.Key != "" || s.Meta != nil || s.Repeat != 0 {
			k.add(s.At, "with, with_text, key, meta and repeat belong to a call")
		}
	} else if (s.With == nil) == (s.WithText == nil) {
		k.add(s.At, "a call has either with or with_text")
	}
	if s.Key != "" && s.Meta != nil {
		k.add(s.At, "a call has either key or meta")
	}
	if s.Repeat < 0 || s.Repeat > 10_000 {
		k.add(s.At, "repeat is 1 to 10000")
	}
	if s.ID != "" && (s.Raw == nil || s.Raw.Kind != jsontree.String) {
		k.add(s.At, "id belongs to a raw text")
	}
	if s.Raw != nil {
		k.raw(s)
	}
	if s.Restart != nil {
		k.env(s.At, s.Restart.Env)
	}
	var names []string
	for _, n := range []*jsontree.Node{s.With, s.Meta, s.Raw} {
		names = append(names, variables(n)...)
	}
	if IsVariable(s.Key) {
		names = append(names, s.Key)
	}
	for _, name := range names {
		if k.uses[name]++; !k.bound[name] {
			k.add(s.At, "%s is sent before anything has set it", name)
		}
	}
}

// raw checks that the answer to a raw line can be told from those to the SDK's
// client, whose ids are numbers.
func (k *checker) raw(s *Step) {
	switch s.Raw.Kind {
	case jsontree.Object:
		if id := s.Raw.Get("id"); !s.Silent && (id == nil || id.Kind != jsontree.String) {
			k.add(s.Raw.At, "a raw line that is answered has an id that is a string")
		}
	case jsontree.String:
		if s.Silent == (s.ID != "") {
			k.add(s.Raw.At, "a raw text is silent, or has the id of its answer in the field id")
		}
	default:
		k.add(s.Raw.At, "a raw line is an object or a text")
	}
}

// expected checks what a step expects.
func (k *checker) expected(s *Step, inGroup bool) {
	outcomes := count(s.Want != nil, s.Refused != "", s.Refused == "" && s.Invalid != nil,
		s.Denied != nil, s.Error != 0, s.Result != nil, s.Silent)
	switch {
	case outcomes > 1:
		k.add(s.At, "a step expects one of want, refused, invalid, denied, error, result, silent")
	case s.Call != "" && outcomes == 0 && s.Tally == nil && !inGroup:
		k.add(s.At, "a call expects want, refused, invalid, denied or error, or has a tally")
	case s.Raw != nil && outcomes == 0:
		k.add(s.At, "a raw line expects want, refused, invalid, denied, error, result or silent")
	case s.Call == "" && s.Raw == nil && outcomes > 0:
		k.add(s.At, "only a call or a raw line has an outcome")
	case s.Parallel != nil && s.Tally == nil:
		k.add(s.At, "a parallel group has a tally")
	case (s.Silent || s.Result != nil) && s.Raw == nil:
		k.add(s.At, "silent and result belong to a raw line")
	}
	if s.Tally != nil && s.Parallel == nil && s.Repeat == 0 {
		k.add(s.At, "a tally belongs to a repetition or a parallel group")
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Tally)) {
		if _, err := strconv.Atoi(kind); kind != "done" && err != nil && !reasonForm.MatchString(kind) {
			k.add(s.At, "a tally counts done, CODE/reason or the code of a protocol error, not %q", kind)
		}
	}
	if s.Refused != "" && !reasonForm.MatchString(s.Refused) {
		k.add(s.At, "refused is CODE/reason, not %q", s.Refused)
	}
	if s.Refused == "" && (s.Details != nil || s.Retryable != nil) {
		k.add(s.At, "details and retryable belong to refused")
	}
	if s.Says != "" && s.Refused == "" && s.Invalid == nil && s.Denied == nil && s.Error == 0 {
		k.add(s.At, "says belongs to a refusal or an error")
	}
	for _, n := range []*jsontree.Node{s.Want, s.Details, s.Denied, s.Result} {
		for _, name := range variables(n) {
			k.uses[name] += max(1, s.Repeat)
			k.bound[name] = true
		}
	}
	if IsVariable(s.Operation) {
		k.uses[s.Operation]++
		k.bound[s.Operation] = true
	}
}

var variable = regexp.MustCompile(`^\$[a-z][A-Za-z0-9_]*$`)

// IsVariable reports whether s is a "$name". The operators of objects are no
// values, so the two do not meet.
func IsVariable(s string) bool { return variable.MatchString(s) }

// variables lists the variables among the values of n.
func variables(n *jsontree.Node) []string {
	if n == nil {
		return nil
	}
	var names []string
	if n.Kind == jsontree.String && IsVariable(n.Text) {
		names = append(names, n.Text)
	}
	for _, m := range n.Members {
		names = append(names, variables(m.Value)...)
	}
	for _, e := range n.Elements {
		names = append(names, variables(e)...)
	}
	return names
}
