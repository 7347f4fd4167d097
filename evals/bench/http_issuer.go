package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"time"
)

// audience is whom the issuer's token is for.
const audience = "http://bench.example/mcp"

// issuer gives out one signed token and shows the key that it is signed with.
type issuer struct {
	url, token string
	close      func() error
}

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	part := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	show := func(path string, v any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	show("/.well-known/openid-configuration", map[string]any{
		"issuer": server.URL, "jwks_uri": server.URL + "/keys", "authorization_endpoint": server.URL + "/none", "token_endpoint": server.URL + "/none",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
	show("/keys", map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": part(key.N.Bytes()), "e": part(big.NewInt(int64(key.E)).Bytes()),
	}}})
	claims, err := json.Marshal(map[string]any{
		"iss": server.URL, "aud": audience, "sub": "bench", "tenant": "default", "scope": "customer:read refund:write",
		"iat": time.Now().Unix(), "exp": time.Now().Add(24 * time.Hour).Unix(),
	})
	if err != nil {
		return nil, err
	}
	signed := part([]byte(`{"alg":"RS256","kid":"1","typ":"JWT"}`)) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return nil, err
	}
	return &issuer{url: server.URL, token: signed + "." + part(signature), close: func() error { server.Close(); return nil }}, nil
}
