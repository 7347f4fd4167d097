package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A kill leaves what was written in the cache of the system, synced or not, so
// the storms can not tell whether an answer waited for the disk. This counts.

// maxTraced is how many bytes of a write the trace shows: all answers of a batch.
const maxTraced = 1 << 20

// TestSyncBeforeAnswer follows a server's system calls: before the first answer
// to a batch of refunds the ledger's log has been synced, and what changes
// nothing syncs nothing, so that the syncs counted are those of the batches.
func TestSyncBeforeAnswer(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("NO STRACE, NOTHING WAS TESTED: install it, for example with apt-get install strace")
	}
	l, path := file(t)
	b, err := openBook(t.Context(), l, 1, "USD", "EUR")
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	server := l.server(t.Context())
	traced := exec.CommandContext(t.Context(), strace, append([]string{
		"-f", "--seccomp-bpf", "-y", "-s", strconv.Itoa(maxTraced), "-e", "trace=fsync,fdatasync,write", "-o", trace, "--",
	}, server.Args...)...)
	traced.Env = server.Env
	c, err := start(t.Context(), traced)
	if err != nil {
		t.Fatal(err)
	}
	defer c.kill()

	// Each batch begins when the one before it is answered, so what is synced in
	// between is synced for it.
	const rounds = 4
	var batches []*batch
	send := func(calls int, refunds bool) {
		t.Helper()
		batches = append(batches, &batch{calls: calls, refunds: refunds})
		err := each(make([]struct{}, calls), calls, func(i int, _ struct{}) error {
			if !refunds {
				return c.ask(t.Context(), "get_customer_record", `{"customer_id":"`+b.customers[i%2].id+`"}`, &struct{}{})
			}
			b.mu.Lock()
			r := b.add(b.customers[i%2], fmt.Sprintf("sync-%d", len(b.refunds)), 1)
			b.mu.Unlock()
			_, err := b.refund(t.Context(), c, r, &b.acknowledged, false)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		send(1, true)
		send(16, false)
		send(32, true)
		send(1, false)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, &b.findings)

	const firstCall = 2 // the id of the call after initialize
	follow(t, trace, path+"-wal", firstCall, batches)
	alone := 0
	for i, batch := range batches {
		switch {
		case batch.refunds && batch.before == 0:
			t.Errorf("batch %d: the first of %d refunds was answered before a sync", i, batch.calls)
		case !batch.refunds && batch.before+batch.after > 0:
			t.Errorf("batch %d: %d syncs for calls that change nothing", i, batch.before+batch.after)
		case batch.refunds && batch.calls == 1:
			alone += batch.before + batch.after
		}
	}
	// The log's first commit may sync its header too.
	if alone != rounds && alone != rounds+1 {
		t.Errorf("%d syncs for %d refunds one by one", alone, rounds)
	}
}

// batch is calls that were sent together.
type batch struct {
	calls   int
	refunds bool

	answered      int
	before, after int // syncs before its first answer, and from there to its last
}

var (
	// PID fdatasync(9</path/of/file>) = 0
	syncDone = regexp.MustCompile(`^(\d+) +f(?:data)?sync\(\d+<(.*)>\) += 0$`)
	// PID fdatasync(9</path/of/file> <unfinished ...>
	syncBegun = regexp.MustCompile(`^(\d+) +f(?:data)?sync\(\d+<(.*)> <unfinished \.\.\.>$`)
	// PID <... fdatasync resumed>) = 0
	syncEnded = regexp.MustCompile(`^(\d+) +<\.\.\. f(?:data)?sync resumed>\) += 0$`)
	// PID write(7<pipe:[12]>, "{\"jsonrpc\":\"2.0\",\"id\":7,...
	answersBegun = regexp.MustCompile(`^\d+ +write\(\d+<pipe:\[\d+\]>, "\{\\"jsonrpc\\"`)
	answerID     = regexp.MustCompile(`\{\\"jsonrpc\\":\\"2\.0\\",\\"id\\":(\d+),`)
)

// follow counts the syncs of the file and the answers in a trace of strace. The
// calls of the batches have the ids from first on.
func follow(t *testing.T, trace, file string, first int, batches []*batch) {
	t.Helper()
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	syncing := map[string]bool{} // by the process whose sync of the file has begun
	at := 0
	synced := func() {
		switch {
		case at == len(batches): // by the end of the server
		case batches[at].answered == 0:
			batches[at].before++
		default:
			batches[at].after++
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if m := syncDone.FindStringSubmatch(line); m != nil && m[2] == file {
			synced()
		} else if m := syncBegun.FindStringSubmatch(line); m != nil {
			syncing[m[1]] = m[2] == file
		} else if m := syncEnded.FindStringSubmatch(line); m != nil && syncing[m[1]] {
			synced()
		} else if answersBegun.MatchString(line) {
			for _, m := range answerID.FindAllStringSubmatch(line, -1) {
				id, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				if id < first {
					continue
				}
				if at == len(batches) || id >= first+batches[at].calls {
					t.Fatalf("an answer to call %d before all of batch %d are answered", id, at)
				}
				batches[at].answered++
				if batches[at].answered == batches[at].calls {
					first += batches[at].calls
					at++
				}
			}
		}
	}
	if at != len(batches) {
		t.Fatalf("the trace ends in batch %d of %d", at, len(batches))
	}
}
