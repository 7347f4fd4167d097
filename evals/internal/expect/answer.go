package expect

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/evals/internal/jsontree"
	"github.com/refundledger/refundledger/evals/internal/trajectory"
)

// Names in an answer's _meta.
const (
	KeyMeta      = "refundledger.dev/operation-key"
	ReplayedMeta = "refundledger.dev/replayed"
)

// Codes of protocol errors.
const (
	codeInvalidParams = -32602
	codeDenied        = -32001
)

// Answer is one JSON-RPC response, read without losing anything.
type Answer struct {
	// Failure is the error of a JSON-RPC error, or nil.
	Failure *jsontree.Node
	// Result is the result, or nil.
	Result *jsontree.Node
}

// Read takes a response apart.
func Read(line string) (Answer, error) {
	n, err := jsontree.Parse([]byte(line))
	if err != nil {
		return Answer{}, fmt.Errorf("the answer can not be read: %w", err)
	}
	a := Answer{n.Get("error"), n.Get("result")}
	if (a.Failure == nil) == (a.Result == nil) {
		return a, fmt.Errorf("an answer has either a result or an error: %s", Shorten(line))
	}
	return a, nil
}

// Code returns the code of a protocol error, or "".
func (a Answer) Code() string {
	if c := a.Failure.Get("code"); c != nil {
		return c.Raw
	}
	return ""
}

// refused reports whether a is a tool result that is an error.
func (a Answer) refused() bool {
	e := a.Result.Get("isError")
	return e != nil && e.Raw == "true"
}

// refusal returns the second content block of a refusal, or nil.
func (a Answer) refusal() *jsontree.Node {
	content := a.Result.Get("content")
	if content == nil || len(content.Elements) < 2 {
		return nil
	}
	body, err := jsontree.Parse([]byte(content.Elements[1].Get("text").Str()))
	if err != nil {
		return nil
	}
	return body.Get("error")
}

// text returns the text of the first content block.
func (a Answer) text() string {
	content := a.Result.Get("content")
	if content == nil || len(content.Elements) == 0 {
		return ""
	}
	return content.Elements[0].Get("text").Str()
}

// Content returns the structured content, or nil.
func (a Answer) Content() *jsontree.Node { return a.Result.Get("structuredContent") }

// Kind puts a in a word: done, CODE/reason, or the code of a protocol error.
func (a Answer) Kind() string {
	switch {
	case a.Failure != nil:
		return a.Code()
	case a.refused():
		return a.refusal().Get("code").Str() + "/" + a.refusal().Get("reason").Str()
	}
	return "done"
}

// String says what the answer is, in a line.
func (a Answer) String() string {
	switch {
	case a.Failure != nil:
		return "error " + brief(a.Failure)
	case a.refused():
		return fmt.Sprintf("refused %s %q", a.Kind(), a.text())
	case a.Content() != nil:
		return "done " + brief(a.Content())
	}
	return "result " + brief(a.Result)
}

// Check compares an answer to a call of tool with what the step expects. The
// laws that hold for every answer come first; changes says that the tool
// changes state, sent is the key that went with the call.
func (v Variables) Check(s *trajectory.Step, a Answer, tool string, changes bool, sent string) error {
	if tool != "" {
		if err := a.laws(tool, changes, sent); err != nil {
			return fmt.Errorf("%w: %s", err, a)
		}
	}
	if err := v.outcome(s, a, tool); err != nil {
		return err
	}
	if s.Says != "" && !s.Pattern.MatchString(a.message()) {
		return differ(fmt.Sprintf("a message like %q", s.Says), "%q", a.message())
	}
	meta := a.Result.Get("_meta")
	if s.Replayed != nil {
		marked := meta.Get(ReplayedMeta)
		if is := marked != nil && marked.Raw == "true"; is != *s.Replayed {
			return differ(fmt.Sprintf("replayed = %t", *s.Replayed), "%t, _meta %s", is, brief(meta))
		}
	}
	if s.Operation != "" {
		want := &jsontree.Node{Kind: jsontree.String, Text: s.Operation, Raw: jsontree.Quote(s.Operation)}
		return v.Match(want, meta.Get(KeyMeta), "_meta."+KeyMeta)
	}
	return nil
}

func (a Answer) message() string {
	if a.Failure != nil {
		return a.Failure.Get("message").Str()
	}
	return a.text()
}

func (v Variables) outcome(s *trajectory.Step, a Answer, tool string) error {
	switch {
	case s.Want != nil:
		if a.Kind() != "done" {
			return differ("success "+brief(s.Want), "%s", a)
		}
		return v.Match(s.Want, a.Content(), "")
	case s.Refused != "":
		return v.checkRefusal(s, a)
	case s.Invalid != nil:
		if a.Code() != fmt.Sprint(codeInvalidParams) {
			return differ("invalid arguments "+strings.Join(s.Invalid, ", "), "%s", a)
		}
		return checkIssues(s.Invalid, a.Failure.Get("data").Get("issues"), a, tool)
	case s.Denied != nil:
		if a.Code() != fmt.Sprint(codeDenied) {
			return differ("denied "+brief(s.Denied), "%s", a)
		}
		return v.Match(s.Denied, a.Failure.Get("data"), "error.data")
	case s.Error != 0:
		if a.Code() != fmt.Sprint(s.Error) {
			return differ(fmt.Sprintf("error %d", s.Error), "%s", a)
		}
	case s.Result != nil:
		if a.Result == nil {
			return differ("result "+brief(s.Result), "%s", a)
		}
		return v.Match(s.Result, a.Result, "")
	}
	return nil
}

func (v Variables) checkRefusal(s *trajectory.Step, a Answer) error {
	if a.Kind() != s.Refused {
		return differ("refused "+s.Refused, "%s", a)
	}
	body := a.refusal()
	if s.Details != nil {
		if err := v.Match(s.Details, body.Get("details"), "details"); err != nil {
			return err
		}
	}
	if s.Retryable != nil && body.Get("retryable").Raw != fmt.Sprint(*s.Retryable) {
		return differ(fmt.Sprintf("retryable = %t", *s.Retryable), "%s", brief(body))
	}
	if s.Invalid != nil {
		return checkIssues(s.Invalid, body.Get("details").Get("issues"), a, "")
	}
	return nil
}

// checkIssues compares the paths of all issues, in any order.
func checkIssues(want []string, issues *jsontree.Node, a Answer, tool string) error {
	if issues == nil {
		return differ("issues on "+strings.Join(want, ", "), "none: %s", a)
	}
	var got []string
	for _, issue := range issues.Elements {
		got = append(got, pathOf(issue.Get("path")))
		says := issue.Get("message").Str()
		if says == "" || issue.Get("code").Str() == "" || issue.Get("path") == nil {
			return differ("an issue with path, code and message", "%s", brief(issue))
		}
		if tool != "" && !strings.Contains(a.message(), says) {
			return differ(fmt.Sprintf("a message that repeats %q", says), "%q", a.message())
		}
	}
	sorted := slices.Sorted(slices.Values(want))
	slices.Sort(got)
	if !slices.Equal(sorted, got) {
		return differ("issues on "+strings.Join(sorted, ", "), "%s: %s", strings.Join(got, ", "), brief(issues))
	}
	if prefix := "Invalid arguments for tool " + tool; tool != "" && !strings.HasPrefix(a.message(), prefix) {
		return differ(fmt.Sprintf("a message that begins with %q", prefix), "%q", a.message())
	}
	return nil
}

// Whole is how a case names the path of the arguments themselves.
const Whole = "arguments"

func pathOf(path *jsontree.Node) string {
	if path == nil || len(path.Elements) == 0 {
		return Whole
	}
	var parts []string
	for _, e := range path.Elements {
		if e.Kind == jsontree.String {
			parts = append(parts, e.Text)
			continue
		}
		parts = append(parts, e.Raw) // a position
	}
	return strings.Join(parts, ".")
}

var keyForm = regexp.MustCompile(operation.KeyPattern)

// laws checks what holds for every answer to a call of a tool.
func (a Answer) laws(tool string, changes bool, sent string) error {
	switch {
	case a.Failure != nil:
		return a.failureLaws()
	case a.refused():
		if err := a.refusalLaws(); err != nil {
			return err
		}
	default:
		if err := a.successLaws(); err != nil {
			return err
		}
	}
	// Invalid arguments never reached the tool: no operation was begun.
	if !changes || a.refusal().Get("code").Str() == fault.InvalidInput.String() {
		return nil
	}
	key := a.Result.Get("_meta").Get(KeyMeta)
	if sent != "" && key.Str() != sent {
		return differ(fmt.Sprintf("the key %q in _meta", sent), "%s", brief(key))
	}
	if !keyForm.MatchString(key.Str()) {
		return differ("an operation key in _meta of every answer of "+tool, "%s", brief(key))
	}
	return nil
}

func (a Answer) failureLaws() error {
	known := []string{"-32001", "-32029", "-32600", "-32601", "-32602", "-32603"}
	if !slices.Contains(known, a.Code()) {
		return errors.New("a protocol error with a code that is not of the contract")
	}
	if a.message() == "" {
		return errors.New("a protocol error without a message")
	}
	return nil
}

func (a Answer) refusalLaws() error {
	if a.Content() != nil {
		return errors.New("a refusal with structured content, which clients would check against the output schema")
	}
	body := a.refusal()
	if n := len(a.Result.Get("content").Elements); n != 2 || body == nil {
		return errors.New("a refusal is a sentence and a JSON text {\"error\": …}")
	}
	if _, ok := fault.ParseCode(body.Get("code").Str()); !ok {
		return fmt.Errorf("%s is no code of the closed list", brief(body.Get("code")))
	}
	if r := body.Get("retryable"); r == nil || r.Kind != jsontree.Bool {
		return errors.New("a refusal does not say whether it is retryable")
	}
	if a.text() == "" || body.Get("message").Str() != a.text() {
		return errors.New("a refusal's sentence and message differ")
	}
	return nil
}

func (a Answer) successLaws() error {
	if c := a.Content(); c == nil || c.Kind != jsontree.Object {
		return errors.New("a success without structured content")
	}
	text, err := jsontree.Parse([]byte(a.text()))
	if err != nil || !jsontree.Equal(text, a.Content()) {
		return errors.New("the text and the structured content of a success differ")
	}
	return nil
}

// Tally compares how many answers there are of each kind.
func Tally(want map[string]int, answers []Answer) error {
	got := map[string]int{}
	for _, a := range answers {
		got[a.Kind()]++
	}
	if fmt.Sprint(want) != fmt.Sprint(got) { // maps print sorted
		return differ(counts(want), "%s", counts(got))
	}
	return nil
}

func counts(m map[string]int) string {
	var parts []string
	for kind, n := range m {
		parts = append(parts, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(parts)
	return strings.Join(parts, " and ")
}

// Distinct checks that a member of the structured content differs in all successes.
func Distinct(member string, answers []Answer) error {
	seen := map[string]bool{}
	for _, a := range answers {
		if a.Kind() != "done" {
			continue
		}
		value := brief(a.Content().Get(member))
		if seen[value] {
			return differ("another "+member+" in each answer", "%s twice", value)
		}
		seen[value] = true
	}
	return nil
}
