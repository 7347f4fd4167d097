package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateEvery is how long a change of the certificate's files may go
// unnoticed.
const certificateEvery = time.Second

// renewed is a certificate that is read again when its files have changed.
// Files that do not fit together, as while they are being replaced, change
// nothing; the log says so.
type renewed struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]stamp // of the files that current, or the last failure, was read from
	checked time.Time
}

// stamp changes when a file does.
type stamp struct {
	changed time.Time
	size    int64
}

func openCertificate(cert, key string, log *slog.Logger) (*renewed, error) {
	r := &renewed{cert: cert, key: key, log: log}
	r.checked, r.read = time.Now(), r.stamps()
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate can not be used: %w", err)
	}
	r.current = &c
	return r, nil
}

func (r *renewed) stamps() (s [2]stamp) {
	for i, path := range []string{r.cert, r.key} {
		if info, err := os.Stat(path); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}

// get returns the certificate for a connection that begins.
func (r *renewed) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.checked) < certificateEvery {
		return r.current, nil
	}
	r.checked = now
	found := r.stamps()
	if found == r.read {
		return r.current, nil
	}
	r.read = found
	c, err := tls.LoadX509KeyPair(r.cert, r.key)
	if err != nil {
		r.log.Error("the new certificate can not be used; the old one stays", "cause", err.Error())
		return r.current, nil
	}
	r.log.Info("a new certificate is used")
	r.current = &c
	return r.current, nil
}
