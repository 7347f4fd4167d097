package mcpserver

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// doors are the names under which the server may be called, and the pages that
// may call it. A page of another site that learned to resolve its own name to
// this machine still sends that name as Host.
type doors struct {
	hosts   map[string]bool // in lower case
	origins []string        // in lower case
}

func newDoors(hosts, origins []string) doors {
	d := doors{hosts: map[string]bool{}}
	for _, host := range hosts {
		d.hosts[strings.ToLower(host)] = true
	}
	for _, origin := range origins {
		d.origins = append(d.origins, strings.ToLower(origin))
	}
	return d
}

// admit returns the origin of a request that a page sent, "" for another, and
// what keeps it out: host, origin or nothing. Names are compared as a whole:
// nothing is parsed, so nothing can be parsed in two ways.
func (d doors) admit(r *http.Request) (origin, why string) {
	if !d.hosts[strings.ToLower(r.Host)] {
		return "", "host"
	}
	sent := r.Header["Origin"]
	switch {
	case len(sent) == 0:
		return "", ""
	case len(sent) > 1 || !slices.Contains(d.origins, strings.ToLower(sent[0])):
		return "", "origin"
	}
	return sent[0], ""
}

// allowOrigin lets the browser show the page our answer.
func allowOrigin(header http.Header, origin, method string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Allow-Methods", method)
	header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+headerOfKey+", "+headerOfVersion+", Mcp-Method, Mcp-Name")
	header.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
}

// LocalHosts are the names of a server that listens on an address: the address,
// and those of this machine for itself. The world's name of a server that is
// reached from elsewhere has to be told.
func LocalHosts(listens string) []string {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return nil
	}
	names := []string{"localhost", "127.0.0.1", "::1"}
	if ip, err := netip.ParseAddr(host); host != "" && !slices.Contains(names, host) && (err != nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	var hosts []string
	for _, name := range names {
		hosts = append(hosts, net.JoinHostPort(name, port))
		if port == "80" || port == "443" { // clients leave out the port of the scheme
			hosts = append(hosts, strings.TrimSuffix(net.JoinHostPort(name, ""), ":"))
		}
	}
	return hosts
}

// Behind puts a handler behind the same doors, for what is served elsewhere.
func Behind(hosts []string, next http.Handler) http.Handler {
	d := newDoors(hosts, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, why := d.admit(r); why != "" {
			http.Error(w, "this "+why+" is not allowed", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
