package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/refundledger/refundledger/adapters/auth"
	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/telemetry"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/ports"
)

// metricsTime is how long reading the metrics may take.
const metricsTime = 10 * time.Second

// serveHTTP serves until ctx ends. fixed is who calls where no token says it.
func serveHTTP(ctx context.Context, c config.HTTP, fixed access.Principal, s *mcpserver.Server, l ports.Ledger, m *telemetry.Metrics, log *slog.Logger) error {
	var secure *tls.Config
	if c.TLSCert != "" {
		certificate, err := openCertificate(c.TLSCert, c.TLSKey, log)
		if err != nil {
			return err
		}
		secure = &tls.Config{GetCertificate: certificate.get, MinVersion: tls.VersionTLS12}
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	o := mcpserver.HTTPOptions{
		Hosts: c.Hosts, Origins: c.Origins, Anonymous: fixed, PublicURL: c.PublicURL, Issuer: c.Issuer,
		Rate: c.Rate, Burst: c.Burst, MaxInFlight: c.MaxInFlight, MaxEach: c.MaxEach,
		Ready: func(ctx context.Context) error { return ask(ctx, l, fixed) }, Metrics: m.Handler(), MetricsToken: c.MetricsToken,
	}
	if o.PublicURL == "" {
		u := url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/mcp"}
		if secure != nil {
			u.Scheme = "https"
		}
		o.PublicURL = u.String()
	}
	if o.Hosts == nil {
		o.Hosts = mcpserver.LocalHosts(listener.Addr().String())
		if u, err := url.Parse(o.PublicURL); err == nil {
			o.Hosts = append(o.Hosts, u.Host)
		}
	}
	if o.Verifier, err = verifier(ctx, c, fixed, o.PublicURL, log); err != nil {
		return err
	}
	h, err := s.HTTP(o)
	if err != nil {
		return err
	}
	if c.MetricsAddr != "" {
		stop, err := serveMetrics(c.MetricsAddr, m.Handler(), log)
		if err != nil {
			return err
		}
		defer stop()
	}
	log.Info("serving", "address", o.PublicURL, "listens", listener.Addr().String(), "auth", string(c.AuthMode))
	return h.Serve(ctx, listener, secure)
}

// verifier returns who knows the tokens, nobody where there are none.
func verifier(ctx context.Context, c config.HTTP, fixed access.Principal, resource string, log *slog.Logger) (mcpserver.Verifier, error) {
	switch c.AuthMode {
	case config.StaticAuth:
		return auth.OpenStatic(c.Tokens, log)
	case config.OIDCAuth:
		if c.Audience != "" {
			resource = c.Audience
		}
		return auth.DiscoverOIDC(ctx, auth.OIDCOptions{
			Issuer: c.Issuer, Audience: resource, Algorithms: c.Algorithms, Fixed: fixed,
			Claims: auth.ClaimNames{
				Tenant: c.ClaimTenant, ID: c.ClaimID, Kind: c.ClaimKind, Plan: c.ClaimPlan, Scopes: c.ClaimScopes, Owner: c.ClaimOwner,
			},
		})
	}
	return nil, nil
}

// ask asks the ledger for something that is not there.
func ask(ctx context.Context, l ports.Ledger, who access.Principal) error {
	key, err := operation.ParseKey("readiness")
	if err != nil {
		return err
	}
	_, err = l.Load(ctx, who.Tenant(), ledger.OutcomeRef(who.ID(), key))
	return err
}

// serveMetrics serves the metrics on an address of their own, until stop.
func serveMetrics(addr string, metrics http.Handler, log *slog.Logger) (stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", mcpserver.Behind(mcpserver.LocalHosts(listener.Addr().String()), metrics))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: metricsTime, ReadTimeout: metricsTime, WriteTimeout: metricsTime, IdleTimeout: metricsTime}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the metrics are not served any more", "cause", err.Error())
		}
	}()
	log.Info("serving metrics", "listens", listener.Addr().String())
	return func() { _ = server.Close() }, nil
}
