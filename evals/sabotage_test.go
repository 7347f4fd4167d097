package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A saboteur stands between client and server and breaks one promise. The cases
// are worth something only if they notice.
type saboteur struct {
	env map[string]string
	// asks changes a request on its way to the server; what it returns is sent.
	asks func(message) []message
	// answers changes a message on its way back.
	answers func(message) message
	// noise is written to stdout before each answer, log to stderr on each request.
	noise string
	log   func(message) string
}

// message is a JSON-RPC message whose numbers keep their digits.
type message = map[string]any

// at follows the names down to an object, or returns an empty one.
func at(m message, names ...string) message {
	for _, n := range names {
		m, _ = m[n].(message)
	}
	if m == nil {
		return message{}
	}
	return m
}

// refundOnly applies change to the arguments of calls of trigger_refund.
func refundOnly(change func(params, arguments message)) func(message) []message {
	return func(m message) []message {
		if p := at(m, "params"); p["name"] == "trigger_refund" {
			if a, ok := p["arguments"].(message); ok {
				change(p, a)
			}
		}
		return []message{m}
	}
}

var saboteurs = map[string]struct {
	does     string
	notice   string // a pattern of the cases that must fail
	saboteur saboteur
}{
	"pays-twice": {"makes each refund a second time, unasked",
		"look-up-refund-look-up-history-verify|overdraw-in-small-slices",
		saboteur{asks: func(m message) []message {
			again := message{"jsonrpc": "2.0", "id": "ghost", "method": m["method"], "params": message{"name": "trigger_refund", "arguments": at(m, "params")["arguments"]}}
			if at(m, "params")["name"] != "trigger_refund" {
				return []message{m}
			}
			return []message{again, m}
		}, answers: func(m message) message {
			if m["id"] == "ghost" {
				return nil
			}
			return m
		}}},
	"loses-keys": {"drops the host's key, so that a retry pays again",
		"repeat-after-a-lost-answer|same-key-with-a-changed-amount|same-key-eight-times|a-key-under-which-nothing|what-became-of-a-call",
		saboteur{asks: refundOnly(func(p, _ message) { delete(p, "_meta") })}},
	"quotes": {"takes amounts in quotes for numbers",
		"an-amount-in-quotes-is-no-amount|every-problem-in-one-answer",
		saboteur{asks: refundOnly(func(_, a message) {
			if s, ok := a["amount"].(string); ok && json.Valid([]byte(s)) {
				a["amount"] = json.Number(s)
			}
		})}},
	"rounds": {"reads amounts through a float and rounds to cents",
		"a-fraction-of-a-cent-is-refused-not-rounded",
		saboteur{asks: refundOnly(func(_, a message) {
			if n, ok := a["amount"].(json.Number); ok {
				if f, err := n.Float64(); err == nil && f < 1e6 {
					a["amount"] = json.Number(fmt.Sprintf("%.2f", f))
				}
			}
		})}},
	"everything": {"takes an amount of zero, or none, for the whole balance",
		"zero-is-not-everything|a-misspelt-argument-is-not-ignored",
		saboteur{asks: refundOnly(func(_, a message) {
			if n, ok := a["amount"].(json.Number); !ok && a["amount"] == nil || ok && strings.Trim(n.String(), "-0.e5") == "" {
				a["amount"] = json.Number("500")
			}
		})}},
	"ignores": {"drops the arguments that it does not know",
		"an-override-is-no-argument|the-currency-is-no-argument|names-in-another-case|who-acts-is-no-argument|the-key-is-no-argument",
		saboteur{asks: refundOnly(func(_, a message) {
			for name := range a {
				if name != "customer_id" && name != "amount" && name != "reason" {
					delete(a, name)
				}
			}
		})}},
	"folds": {"reads names without regard to case",
		"names-in-another-case|look-alike-names",
		saboteur{asks: refundOnly(func(_, a message) {
			for name, v := range a {
				for _, known := range []string{"customer_id", "amount", "reason"} {
					if name != known && strings.EqualFold(name, known) {
						delete(a, name)
						a[known] = v
					}
				}
			}
		})}},
	"repairs": {"repairs ids that are almost right",
		"ids-that-are-almost-right",
		saboteur{asks: refundOnly(func(_, a message) {
			if s, ok := a["customer_id"].(string); ok {
				a["customer_id"] = strings.ToUpper(strings.TrimSpace(s))
			}
		})}},
	"cleans": {"strips invisible characters instead of refusing them",
		"a-reason-nobody-can-see|a-reason-that-reads-another-way",
		saboteur{asks: refundOnly(func(_, a message) {
			if s, ok := a["reason"].(string); ok {
				a["reason"] = strings.Map(func(r rune) rune {
					if 0x202a <= r && r <= 0x202e || 0xe0000 <= r && r <= 0xe007f || r < ' ' {
						return -1
					}
					return r
				}, s)
			}
		})}},
	"adopts": {"makes an ordinary call of a notification",
		"a-refund-as-a-notification",
		saboteur{asks: func(m message) []message {
			if m["id"] == nil && m["method"] == "tools/call" {
				m["id"] = "adopted"
			}
			return []message{m}
		}, answers: func(m message) message {
			if m["id"] == "adopted" {
				return nil
			}
			return m
		}}},
	"writes": {"ignores READ_ONLY",
		"a-read-only-server-moves-no-money",
		saboteur{env: map[string]string{"READ_ONLY": "false"}}},
	"allows": {"gives every agent every scope",
		"an-agent-without-refund-write|an-agent-that-may-only-refund",
		saboteur{env: map[string]string{"PRINCIPAL_SCOPES": "all"}}},
	"hides": {"leaves refunds out of the list",
		"newest-refund-first-page-by-page|look-up-refund-look-up-history-verify",
		saboteur{answers: func(m message) message {
			if c := at(m, "result", "structuredContent"); c["refunds"] != nil {
				c["refunds"] = []any{}
				retext(m)
			}
			return m
		}}},
	"flatters": {"shows a balance a cent too high",
		"the-exact-balance-and-not-a-cent-more|a-suspended-customer-gets-nothing",
		saboteur{answers: func(m message) message {
			c := at(m, "result", "structuredContent")
			if n, ok := c["refundableBalance"].(json.Number); ok {
				f, _ := n.Float64()
				c["refundableBalance"] = json.Number(fmt.Sprintf("%.2f", f+0.01))
				retext(m)
			}
			return m
		}}},
	"forgets": {"does not mark a replay",
		"repeat-after-a-lost-answer",
		saboteur{answers: func(m message) message {
			delete(at(m, "result", "_meta"), "refundledger.dev/replayed")
			return m
		}}},
	"anonymous": {"answers a write without its key",
		"a-suspended-customer-gets-nothing|without-a-key-the-answer-names-one",
		saboteur{answers: func(m message) message {
			delete(at(m, "result"), "_meta")
			return m
		}}},
	"one-by-one": {"tells one problem at a time",
		"every-problem-in-one-answer",
		saboteur{answers: func(m message) message {
			if d := at(m, "error", "data"); d["issues"] != nil {
				d["issues"] = d["issues"].([]any)[:1]
			}
			return m
		}}},
	"softens": {"answers invalid arguments as tool results",
		"an-amount-in-quotes-is-no-amount",
		saboteur{env: map[string]string{"INPUT_ERRORS": "tool"}}},
	"chats": {"writes a banner to stdout",
		"an-empty-account-has-nothing-to-refund",
		saboteur{noise: "Refund Ledger is ready"}},
	"gossips": {"logs the arguments",
		"logs-hold-no-personal-data",
		saboteur{log: func(m message) string { return fmt.Sprint(m["params"]) }}},
}

func TestEveryBrokenPromiseIsNoticed(t *testing.T) {
	binary := realServer(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Beside the server, so that the saboteur finds it.
	dir := filepath.Dir(binary)
	for mode, s := range saboteurs {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			front := filepath.Join(dir, saboteurPrefix+mode)
			if err := os.Symlink(self, front); err != nil {
				t.Fatal(err)
			}
			pattern := "/(" + s.notice + ")"
			t.Cleanup(func() { os.Remove(front) })
			if code, out, errs := evals(t, "-server", binary, "-cases", "cases", "-run", pattern); code != exitPassed {
				t.Fatalf("the honest server fails already:\n%s%s", out, errs)
			}
			_, out, errs := evals(t, "-server", front, "-cases", "cases", "-run", pattern)
			if strings.Contains(out, "PASS") || !strings.Contains(out, "FAIL") {
				t.Errorf("a server that %s is not noticed by every case:\n%s%s", s.does, out, errs)
			}
		})
	}
}

// retext writes the structured content into the text block again.
func retext(m message) {
	text, err := json.Marshal(at(m, "result", "structuredContent"))
	if err != nil {
		panic(err)
	}
	at(m, "result")["content"].([]any)[0].(message)["text"] = string(text)
}

const saboteurPrefix = "saboteur-"

func saboteurMode(program string) (string, bool) {
	return strings.CutPrefix(filepath.Base(program), saboteurPrefix)
}

// sabotage runs the server in the folder of program and stands between.
func sabotage(mode, program string) int {
	s := saboteurs[mode].saboteur
	cmd := exec.Command(filepath.Join(filepath.Dir(program), "refund-mcp"))
	cmd.Env = os.Environ()
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value) // the last one counts
	}
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil || cmd.Start() != nil {
		return 3
	}
	var done sync.WaitGroup
	done.Go(func() {
		pump(os.Stdin, in, func(m message) []message {
			if s.log != nil {
				fmt.Fprintln(os.Stderr, s.log(m))
			}
			if s.asks == nil {
				return []message{m}
			}
			return s.asks(m)
		}, "")
		_ = in.Close()
	})
	pump(out, os.Stdout, func(m message) []message {
		if s.answers != nil {
			if m = s.answers(m); m == nil {
				return nil
			}
		}
		return []message{m}
	}, s.noise)
	if err := cmd.Wait(); err != nil {
		return cmd.ProcessState.ExitCode() // stdin may be open still
	}
	done.Wait()
	return 0
}

// pump copies lines, each changed. What is no JSON object goes through as it is.
func pump(from io.Reader, to io.Writer, change func(message) []message, noise string) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var m message
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			if d.Decode(&m) != nil || m == nil {
				_, _ = io.WriteString(to, line)
			} else {
				if noise != "" {
					_, _ = io.WriteString(to, noise+"\n")
				}
				for _, changed := range change(m) {
					text, err := json.Marshal(changed)
					if err != nil {
						panic(err)
					}
					_, _ = to.Write(append(text, '\n'))
				}
			}
		}
		if err != nil {
			return
		}
	}
}
