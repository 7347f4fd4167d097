package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
)

// machine is where the figures come from.
type machine struct {
	CPU   string
	Cores int
	Go    string
	Load  string // of the last 1, 5 and 15 minutes, at the start; "" if unknown
	Sync  time.Duration
}

// thisMachine looks at the machine, and at the disk that dir is on.
func thisMachine(dir string) (machine, error) {
	m := machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	info, _ := os.ReadFile("/proc/cpuinfo") // Linux only
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(load)); len(f) >= 3 {
		m.Load = strings.Join(f[:3], " ")
	}
	var err error
	m.Sync, err = syncTime(dir)
	return m, err
}

// syncTime is how long the disk takes to make half a kilobyte durable, the
// median: what a commit costs at least.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	took := make([]time.Duration, 200)
	for i := range took {
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	median, _ := load.Percentiles(took)
	return median, nil
}

func (m machine) print(w io.Writer) {
	fmt.Fprintf(w, "machine    %s, %d cores, %s\n", m.CPU, m.Cores, m.Go)
	if m.Load != "" {
		fmt.Fprintf(w, "load       %s before the start; others on the machine make the figures less sure\n", m.Load)
	}
	fmt.Fprintf(w, "disk       a sync takes %v where SQLite's files will be (set TMPDIR for another place)\n", m.Sync.Round(time.Microsecond))
}
