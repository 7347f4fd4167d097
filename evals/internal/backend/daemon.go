package backend

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Daemon is the backend rest as it is deployed: each store is a process of the
// refund-ledgerd at the path given, over a SQLite file of its own.
type Daemon string

// Durable implements Backend: the service outlives the server.
func (Daemon) Durable() bool { return true }

// Close implements Backend.
func (Daemon) Close() {}

// Fresh implements Backend. It returns when the service listens.
func (d Daemon) Fresh(folder string, env map[string]string) (Store, error) {
	s, err := inFile{}.Fresh(folder, env)
	if err != nil {
		return nil, err
	}
	p := &daemon{file: s.(file), ended: make(chan struct{})}
	if err := p.start(string(d)); err != nil {
		return nil, errors.Join(err, p.Discard())
	}
	return p, nil
}

// daemon is a running service.
type daemon struct {
	file
	process    *exec.Cmd // nil: it was not started
	ended      chan struct{}
	failed     error // how it ended, once ended is closed
	url, token string
}

func (d *daemon) start(program string) error {
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(program, args...)
		c.Env = append(os.Environ(), "LEDGER_BACKEND=sqlite", "LEDGER_SQLITE_PATH="+d.path(), "LEDGERD_ADDR=127.0.0.1:0", "LEDGERD_TOKENS="+filepath.Join(d.folder, "tokens"), "LOG_LEVEL=warn")
		return c
	}
	made, err := command("token", "create").Output()
	if err != nil {
		return fmt.Errorf("token create: %w%s", err, said(err))
	}
	d.token = strings.TrimSpace(string(made))

	log, err := os.Create(filepath.Join(d.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	serve := command("serve")
	serve.Stderr = log
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	d.process = serve
	line, _ := bufio.NewReader(out).ReadString('\n') // it prints one line in its life
	go func() {
		d.failed = serve.Wait()
		close(d.ended)
	}()
	var found bool
	if _, d.url, found = strings.Cut(strings.TrimSpace(line), " on "); !found {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("refund-ledgerd does not serve: %s", bytes.TrimSpace(text))
	}
	return nil
}

func said(err error) string {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + strings.TrimSpace(string(e.Stderr))
	}
	return ""
}

// Env implements Store.
func (d *daemon) Env() map[string]string {
	return map[string]string{"LEDGER_BACKEND": "rest", "LEDGER_REST_URL": d.url, "LEDGER_REST_TOKEN": d.token}
}

// patience is how long a service may take to end.
const patience = 30 * time.Second

// Discard implements Store: it ends the service, which must end cleanly, and
// removes its file.
func (d *daemon) Discard() error {
	return errors.Join(d.stop(), d.file.Discard())
}

func (d *daemon) stop() error {
	if d.process == nil {
		return nil
	}
	_ = d.process.Process.Signal(syscall.SIGTERM) // one that has ended already says why below
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	select {
	case <-d.ended:
	case <-ctx.Done():
		_ = d.process.Process.Kill()
		<-d.ended
	}
	if d.failed != nil {
		return fmt.Errorf("refund-ledgerd: %w", d.failed)
	}
	return nil
}
