package restclient

import (
	"context"
	"net"
)

// DialWith makes the client connect in another way.
func (c *Client) DialWith(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	c.wire.DialContext = dial
}
