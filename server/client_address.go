package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of the proxies whose word counts for who their client is.
type Proxies []netip.Prefix

// ParseProxies reads addresses and networks, such as 10.0.0.7 or 10.1.0.0/16.
func ParseProxies(texts []string) (Proxies, error) {
	proxies := make(Proxies, 0, len(texts))
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if address, alone := netip.ParseAddr(text); alone == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no address, and no network such as 10.1.0.0/16", text)
		}
		proxies = append(proxies, network.Masked())
	}
	return proxies, nil
}

func (p Proxies) trusts(address netip.Addr) bool {
	for _, network := range p {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// client is the address that a request comes from, with its port where that is known.
// Each proxy appends the address that it was asked from to X-Forwarded-For: read from
// the end, the first that is no trusted proxy's is the client's, and what stands before
// it is the client's own text.
func (p Proxies) client(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !p.trusts(plain(peer.Addr())) {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	client := r.RemoteAddr
	for i := len(hops) - 1; i >= 0; i-- {
		address, ok := hop(hops[i])
		if !ok {
			break
		}
		if client = address.String(); !p.trusts(address) {
			break
		}
	}
	return client
}

// hop reads an element of X-Forwarded-For: some proxies add a port.
func hop(text string) (address netip.Addr, ok bool) {
	text = strings.TrimSpace(text)
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return plain(withPort.Addr()), true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return plain(address), err == nil
}

// plain is an address without the forms in which the same one may come.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

type addressKey struct{}

// withAddress keeps the address that a request comes from in its context.
func (p Proxies) withAddress(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, addressKey{}, p.client(r))
}

// remoteAddress is the address that the request of ctx comes from, with its port where
// that is known; "" where there is none.
func remoteAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// limitedAddress is what counts as one client: an IPv4 address, or the 64 bits of an
// IPv6 address that a network is given.
func limitedAddress(ctx context.Context) string {
	address, ok := hop(remoteAddress(ctx))
	if !ok {
		return ""
	}
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
