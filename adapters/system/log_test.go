package system

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// stuck is a reader that reads nothing until it is told to.
type stuck struct {
	release chan struct{}
	written strings.Builder
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.written.Write(p)
}

func TestAReaderThatDoesNotReadCostsLinesNotTime(t *testing.T) {
	w := &stuck{release: make(chan struct{})}
	log := NewLog(w, slog.LevelInfo)
	long := strings.Repeat("x", 1000)
	for range 3000 {
		log.Info(long)
	}
	log.Error("operation not answered", "operation", "k1")
	close(w.release)
	log.Close()
	lines := strings.Split(strings.TrimSpace(w.written.String()), "\n")
	dropped := false
	for _, line := range lines {
		var l struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		dropped = dropped || l.Msg == "log lines dropped"
	}
	if !dropped || len(lines) > 1500 {
		t.Errorf("%d lines, dropped told: %v", len(lines), dropped)
	}
	if !strings.Contains(w.written.String(), `"operation":"k1"`) {
		t.Error("an error was dropped although there is room kept for it")
	}
}

func TestTheEndDoesNotWaitForEver(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	log := NewLog(w, slog.LevelInfo)
	for range 300 {
		log.Info(strings.Repeat("x", 1000)) // more than a pipe holds
	}
	began := time.Now()
	log.Close()
	if took := time.Since(began); took > 3*logFlushWait {
		t.Errorf("it took %s", took)
	}
}

func TestIDsAreRandomUUIDs(t *testing.T) {
	a, b := IDs{}.NewID().String(), IDs{}.NewID().String()
	if a == b || a[14] != '4' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s, %s", a, b)
	}
}
