package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/adapters/auth"
	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/adapters/telemetry"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
)

// listening is a server that serveHTTP serves.
type listening struct {
	url    string
	log    *lockedBuffer
	cancel func()
	ended  chan error
}

// listen serves a fresh ledger as the environment says.
func listen(t *testing.T, environ ...string) (*listening, error) {
	t.Helper()
	c, err := config.ParseHTTP(append(environ, "MCP_HTTP_ADDR=127.0.0.1:0"), auth.Algorithms())
	if err != nil {
		return nil, err
	}
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	who, err := access.NewPrincipal(tenant, "local", access.Agent, access.AgentScopes(), access.Pro, "")
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	if err := demo.Seed(t.Context(), store, tenant, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	m, err := telemetry.New()
	if err != nil {
		t.Fatal(err)
	}
	l := &listening{log: &lockedBuffer{}, ended: make(chan error, 1)}
	log := slog.New(slog.NewJSONHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a := &app.App{Ledger: m.Ledger(store), Refunds: store, Journal: store, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: 10 * time.Second}
	s, err := mcpserver.New(a, mcpserver.Options{Version: "test", Toolsets: mcpserver.Toolsets(), Log: log, Meter: m})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l.cancel = cancel
	go func() { l.ended <- serveHTTP(ctx, c, who, s, a.Ledger, m, log) }()
	t.Cleanup(cancel)
	address := regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)
	for range 1000 {
		if found := address.FindStringSubmatch(l.log.String()); found != nil {
			l.url = found[1]
			return l, nil
		}
		select {
		case err := <-l.ended:
			return nil, err
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatalf("it does not listen: %s", l.log)
	return nil, nil
}

// bearerTransport sends a token.
type bearerTransport struct {
	token string
	next  http.RoundTripper
}

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// tokenFile is a file that knows one token.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	hash := sha256.Sum256([]byte(token))
	path := filepath.Join(t.TempDir(), "tokens")
	line := fmt.Sprintf(`{"sha256":%q,"tenant":"default","id":"agent-1","kind":"agent","scopes":["customer:read","refund:write"],"plan":"pro"}`, hex.EncodeToString(hash[:]))
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate makes one for this machine and returns its files and who trusts it.
func certificate(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	parsed := writeCertificate(t, dir, 1)
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return filepath.Join(dir, "cert"), filepath.Join(dir, "key"), trust
}

// writeCertificate writes one with this serial number into the files cert and key.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// A new certificate is used without a restart; half of one is not.
func TestHTTPTakesANewCertificate(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	l, err := listen(t, "AUTH_MODE=static", "AUTH_TOKENS="+tokenFile(t, "x"), "MCP_TLS_CERT="+filepath.Join(dir, "cert"), "MCP_TLS_KEY="+filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(l.url, "https://"), "/mcp")
	shown := func() int64 {
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) // which one it is, is the question
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := shown(); n != 1 {
		t.Fatalf("at first it shows certificate %d", n)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "cert"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cert"), whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it notices half a certificate", func() bool {
		if n := shown(); n != 1 {
			t.Fatalf("with half a certificate it shows %d", n)
		}
		return strings.Contains(l.log.String(), "the old one stays")
	})
	writeCertificate(t, dir, 2)
	waitUntil(t, "it shows the new certificate", func() bool { return shown() == 2 })
	l.cancel()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
}

// waitUntil waits for what will be so soon, and long for a slow machine.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not so that %s", what)
		}
	}
}

func TestHTTPWithTLSAndATokenFromTheEnvironment(t *testing.T) {
	const token, metricsToken = "agent-token-1", "metrics-token-1"
	cert, key, trust := certificate(t)
	l, err := listen(t, "AUTH_MODE=static", "AUTH_TOKENS="+tokenFile(t, token), "MCP_TLS_CERT="+cert, "MCP_TLS_KEY="+key, "MCP_METRICS_TOKEN="+metricsToken)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	defer plain.CloseIdleConnections()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: l.url, HTTPClient: &http.Client{Transport: bearerTransport{token, plain}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "trigger_refund", Arguments: json.RawMessage(`{"customer_id":"CUST-00001","amount":10,"reason":"Item arrived damaged"}`),
	})
	if err != nil || out.IsError {
		t.Fatalf("%+v %v", out, err)
	}
	session.Close()
	base := strings.TrimSuffix(l.url, "/mcp")
	if code, body := get(t, &http.Client{Transport: plain}, base+"/readyz"); code != 200 || body != `{"status":"ready"}` {
		t.Errorf("readiness: %d %s", code, body)
	}
	if code, body := get(t, &http.Client{Transport: bearerTransport{metricsToken, plain}}, base+"/metrics"); code != 200 ||
		!strings.Contains(body, `refundledger_calls_total{outcome="OK",tool="trigger_refund"} 1`) ||
		!strings.Contains(body, `refundledger_backend_duration_seconds_count{asked="refunds.trigger",outcome="OK"} 1`) {
		t.Errorf("metrics: %d %s", code, body)
	}
	if code, _ := get(t, &http.Client{Transport: plain}, base+"/metrics"); code != http.StatusUnauthorized {
		t.Errorf("metrics without their token: %d", code)
	}
	l.cancel()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
	if log := l.log.String(); strings.Contains(log, token) || strings.Contains(log, metricsToken) {
		t.Errorf("a token is in the log: %s", log)
	}
}

func TestHTTPMetricsOnTheirOwnAddress(t *testing.T) {
	l, err := listen(t, "MCP_ALLOW_ANONYMOUS=true", "MCP_METRICS_ADDR=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"msg":"serving metrics","listens":"([^"]+)"`).FindStringSubmatch(l.log.String())
	if found == nil {
		t.Fatalf("it does not say where: %s", l.log)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if code, body := get(t, client, "http://"+found[1]+"/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("%d %s", code, body)
	}
	evil, err := http.NewRequest("GET", "http://"+found[1]+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	evil.Host = "evil.example"
	resp, err := client.Do(evil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", resp.StatusCode)
	}
	l.cancel()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
}

func TestHTTPDoesNotStartHalf(t *testing.T) {
	for name, environ := range map[string][]string{
		"without its tokens":   {"AUTH_MODE=static", "AUTH_TOKENS=/does/not/exist"},
		"without its issuer":   {"AUTH_MODE=oidc", "OIDC_ISSUER=http://127.0.0.1:1"},
		"without its cert":     {"MCP_ALLOW_ANONYMOUS=true", "MCP_TLS_CERT=/does/not/exist", "MCP_TLS_KEY=/does/not/exist"},
		"anonymous by mistake": {},
	} {
		if l, err := listen(t, environ...); err == nil {
			t.Errorf("%s it serves on %s", name, l.url)
		}
	}
}
