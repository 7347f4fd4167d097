package trajectory

import (
	"strings"
	"testing"
	"testing/fstest"
)

func load(files map[string]string) ([]Case, string) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	cases, err := Load(fsys)
	if err != nil {
		return cases, err.Error()
	}
	return cases, ""
}

func TestAMistakeInACaseIsAnErrorWithItsPlace(t *testing.T) {
	for _, tt := range []struct {
		law, text, want string
	}{
		{"a mistyped field of a step",
			"[{\"name\": \"a\", \"why\": \"b.\", \"steps\": [\n  {\"call\": \"t\", \"with\": {},\n   \"wnat\": {}}\n]}]",
			`refunds/x.json:3:4: case "a": steps[0].wnat: unknown field "wnat"; there are note, call, `},
		{"a mistyped field of a case",
			`[{"name": "a", "why": "b.", "step": []}]`,
			`refunds/x.json:1:29: case "a": step: unknown field "step"; there are name, why, `},
		{"a field in another case",
			`[{"name": "a", "why": "b.", "steps": [{"Call": "t", "with": {}, "want": {}}]}]`,
			`steps[0].Call: unknown field "Call"`},
		{"a field within a parallel group",
			`[{"name": "a", "why": "b.", "steps": [{"parallel": [{"call": "t", "with": {}, "kee": "k"}], "tally": {"done": 1}}]}]`,
			`steps[0].parallel[0].kee: unknown field "kee"`},
		{"a duplicate key",
			"[{\"name\": \"a\",\n  \"why\": \"b.\", \"why\": \"c.\", \"steps\": []}]",
			`refunds/x.json:2:16: duplicate key "why"`},
		{"a duplicate key in the arguments",
			`[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {"amount": 1, "amount": 2}, "want": {}}]}]`,
			`duplicate key "amount"`},
		{"a null for a text", `[{"name": null, "why": "b.", "steps": []}]`, `name: must be a string, not null`},
		{"a case file that is no array", `{"name": "a"}`, `refunds/x.json:1:1: a case file is an array of cases, not an object`},
		{"a name in capitals", `[{"name": "A", "why": "b.", "steps": [{"tools": []}]}]`, `a name is lower-case words joined by hyphens`},
		{"no why", `[{"name": "a", "steps": [{"tools": []}]}]`, `why is a sentence`},
		{"no steps", `[{"name": "a", "why": "b."}]`, `a case has steps, or no_start`},
		{"a step that does two things", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "tools": [], "with": {}, "want": {}}]}]`, `exactly one of call, raw, tools`},
		{"a call that expects nothing", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {}}]}]`, `a call expects want, refused`},
		{"a call that expects two things", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {}, "want": {}, "refused": "NOT_FOUND/x"}]}]`, `expects one of`},
		{"a call without arguments", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "want": {}}]}]`, `either with or with_text`},
		{"a group without a tally", `[{"name": "a", "why": "b.", "steps": [{"parallel": [{"call": "t", "with": {}}]}]}]`, `a parallel group has a tally`},
		{"a refusal that is no CODE/reason", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {}, "refused": "NOT_FOUND"}]}]`, `refused is CODE/reason`},
		{"a tally of an unknown kind", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "repeat": 2, "with": {}, "tally": {"ok": 2}}]}]`, `not "ok"`},
		{"a variable that says nothing", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {}, "want": {"id": "$id"}}]}]`, `$id is used once only`},
		{"a variable that is sent before it is set", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {"id": "$id"}, "want": {"id": "$id"}}]}]`, `$id is sent before anything has set it`},
		{"a pattern that is none", `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {}, "error": 1, "says": "("}]}]`, `missing closing )`},
		{"a restart on a store that may be gone", `[{"name": "a", "why": "b.", "steps": [{"restart": {}}]}]`, `a case with a restart needs "durable"`},
		{"a raw line whose answer could be taken for another's", `[{"name": "a", "why": "b.", "steps": [{"raw": {"id": 1}, "result": {}}]}]`, `has an id that is a string`},
		{"a raw line where there are no sessions", `[{"name": "a", "why": "b.", "protocol": "2026-07-28", "steps": [{"raw": "x", "silent": true}]}]`, `raw lines need a protocol before 2026-07-28`},
		{"an unfinished file", `[{"name": "a"`, `refunds/x.json:1:13: unexpected end of JSON input`},
	} {
		if _, got := load(map[string]string{"refunds/x.json": tt.text}); !strings.Contains(got, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.law, got, tt.want)
		}
	}
}

const good = `[{"name": "a", "why": "b.", "steps": [{"call": "t", "with": {"amount": 1e400}, "want": {}}]}]`

func TestNamesAreUniqueAmongAllFiles(t *testing.T) {
	_, got := load(map[string]string{"refunds/x.json": good, "history/y.json": good})
	if want := `refunds/x.json: the name "a" is taken by a case in history/y.json`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryProblemOfEveryFileIsReported(t *testing.T) {
	_, got := load(map[string]string{
		"refunds/x.json": `[{"name": "a", "why": "b.", "steps": [{"call": "t", "wiht": {}, "wnat": {}}]}]`,
		"refunds/y.json": `[`,
	})
	for _, want := range []string{"wiht", "wnat", "refunds/y.json:1:1:"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not reported in\n%s", want, got)
		}
	}
}

func TestArgumentsKeepTheirDigits(t *testing.T) {
	cases, problems := load(map[string]string{"refunds/x.json": good})
	if problems != "" {
		t.Fatal(problems)
	}
	if c := cases[0]; c.Subject != "refunds" || c.Steps[0].With.Raw != `{"amount": 1e400}` {
		t.Errorf("got %s %s", c.Subject, c.Steps[0].With.Raw)
	}
}

func TestNoCasesAtAllIsAnError(t *testing.T) {
	if _, got := load(nil); got == "" {
		t.Error("an empty folder passes for a good one")
	}
}
