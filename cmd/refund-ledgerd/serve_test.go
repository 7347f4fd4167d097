package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restclient/contract"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
)

// serving serves the demo customers from memory until the test ends.
func serving(t *testing.T, s settings) (url string, log *bytes.Buffer) {
	t.Helper()
	out, in := io.Pipe()
	log = &bytes.Buffer{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, console{os.Stdin, in, log}, s, nil)
		_ = in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it does not serve: %v", <-ended)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it did not end cleanly: %v", err)
		}
	})
	return strings.TrimSpace(strings.TrimPrefix(line, "serving the ledger on ")), log
}

func TestServeWithATokenAndCheck(t *testing.T) {
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	o := config.Serving{Addr: "127.0.0.1:0", Tokens: filepath.Join(t.TempDir(), "tokens"), MaxInFlight: 64, Local: true}
	s := settings{Daemon: config.Daemon{Store: config.Store{Backend: config.Memory}, Serving: o, LogLevel: slog.LevelInfo}, tenant: tenant}
	if err := serve(t.Context(), console{os.Stdin, io.Discard, io.Discard}, s, nil); err == nil || !strings.Contains(err.Error(), "token create") {
		t.Errorf("without tokens: %v", err)
	}

	var made []string
	for _, id := range []string{"one", "refund-mcp"} {
		p, err := principal(tenant, "service", id, gatewayScopes)
		if err != nil {
			t.Fatal(err)
		}
		token, err := createToken(o.Tokens, p)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, token)
	}
	text, err := os.ReadFile(o.Tokens)
	if err != nil || strings.Count(string(text), "\n") != 2 || strings.Contains(string(text), made[0]) || strings.Contains(string(text), made[1]) {
		t.Errorf("the file of tokens: %v\n%s", err, text)
	}
	if info, err := os.Stat(o.Tokens); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens: %v, %v", info.Mode(), err)
	}

	url, _ := serving(t, s)
	client, err := restclient.New(restclient.Options{URL: url, Token: made[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id, err := customers.ParseID("CUST-00001")
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.Load(t.Context(), tenant, id.Ref())
	if err != nil {
		t.Fatal(err)
	}
	if _, there := ledger.Get[customers.Account](v, id.Ref()); !there {
		t.Error("the demo customers are not there")
	}

	var out bytes.Buffer
	if err := check(t.Context(), console{os.Stdin, &out, io.Discard}, contract.Options{URL: url, Token: made[1], Customer: id.String()}); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if holds, skipped := strings.Count(out.String(), "holds  "), strings.Count(out.String(), "not checked  "); holds < 19 || skipped != 11 {
		t.Errorf("%d hold, %d were not checked:\n%s", holds, skipped, &out)
	}
	// Its balance is used up.
	if err := check(t.Context(), console{os.Stdin, io.Discard, io.Discard}, contract.Options{URL: url, Token: made[1], Customer: "CUST-00002"}); err == nil {
		t.Error("a suspended or empty customer was checked")
	}
	if err := check(t.Context(), console{os.Stdin, io.Discard, io.Discard}, contract.Options{URL: "http://ledger.example.com", Token: made[1], Customer: id.String()}); err == nil {
		t.Error("a token would go out without TLS")
	}

	// A token that is made while the server runs is good within seconds.
	p, err := principal(tenant, "service", "late", gatewayScopes)
	if err != nil {
		t.Fatal(err)
	}
	late, err := createToken(o.Tokens, p)
	if err != nil {
		t.Fatal(err)
	}
	lateClient, err := restclient.New(restclient.Options{URL: url, Token: late})
	if err != nil {
		t.Fatal(err)
	}
	defer lateClient.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err = lateClient.Load(t.Context(), tenant, id.Ref()); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new token is not known: %v", err)
		}
	}
}

func TestServeOverPostgres(t *testing.T) {
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	s := settings{
		Daemon: config.Daemon{
			Store:   config.Store{Backend: config.Postgres, PostgresURL: postgrestest.URL(t)},
			Serving: config.Serving{Addr: "127.0.0.1:0", Tokens: filepath.Join(t.TempDir(), "tokens"), MaxInFlight: 64, Local: true},
		},
		tenant: tenant,
	}
	p, err := principal(tenant, "service", "refund-mcp", gatewayScopes)
	if err != nil {
		t.Fatal(err)
	}
	token, err := createToken(s.Serving.Tokens, p)
	if err != nil {
		t.Fatal(err)
	}
	quiet := console{os.Stdin, io.Discard, io.Discard}
	if err := serve(t.Context(), quiet, s, nil); err == nil || !strings.Contains(err.Error(), "refund-ledgerd migrate") {
		t.Errorf("without tables: %v", err)
	}
	if err := errors.Join(migrate(t.Context(), quiet, s, nil), seed(t.Context(), quiet, s, nil)); err != nil {
		t.Fatal(err)
	}
	url, _ := serving(t, s)
	var out bytes.Buffer
	if err := check(t.Context(), console{os.Stdin, &out, io.Discard}, contract.Options{URL: url, Token: token, Customer: "CUST-00001", Invoice: "INV-1003"}); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}
