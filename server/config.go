package server

import (
	"io"
	"log/slog"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"

	"fleetgraph/server/graphqlws"
	"fleetgraph/services/sku"
)

// Config is what a server is made from.
type Config struct {
	// Listen is the address to listen on; port 0 takes a free one.
	Listen string
	// DatabaseURL is the Postgres to use. Empty: the server starts its own in DataDir.
	DatabaseURL string
	// DataDir holds the server's own Postgres, and its encryption key where none is given.
	DataDir string
	// EncryptionKeyFile is the file of the key that seals the credentials of machines.
	// EncryptionKey is the key itself instead, as JSON or the base64 of that.
	EncryptionKeyFile string
	EncryptionKey     string
	// AdminTokenFile receives the first admin token, where one is issued. Empty: it
	// is only printed.
	AdminTokenFile string
	// OIDCConfigFile is the file of the identity providers whose tokens are accepted;
	// empty for none.
	OIDCConfigFile string
	// Demo fills a database without sites with a site of sample machines.
	Demo bool
	// Logger receives the log. Output receives what the user asked for: where the
	// server is, and the first token.
	Logger *slog.Logger
	Output io.Writer
	// Terminal tells that a person reads Output, and nobody keeps it.
	Terminal bool
	// Limits bound one request.
	Limits Limits
	// Callers bound what one caller has at one time.
	Callers CallerLimits
	// HideSchema switches introspection off, and suggestions of names in errors.
	HideSchema bool
	// Sockets bound one WebSocket.
	Sockets graphqlws.Limits
	// Origins are the origins of pages, beside the server's own, from which browsers may
	// open a WebSocket.
	Origins []string
	// Rate bounds what one caller may ask for; zero for no bound.
	Rate Rate
	// Proxies are those whose X-Forwarded-For tells the address of a client.
	Proxies Proxies
	// SkuLimits bound what a SKU may cost to compare; zero means the default.
	SkuLimits sku.Limits
	// Tracer sees every SQL statement; nil for none.
	Tracer pgx.QueryTracer
}

// consoleURL is the address of the console as a browser on this machine reaches it.
func consoleURL(address net.Addr) string {
	host, port := "localhost", ""
	if tcp, ok := address.(*net.TCPAddr); ok {
		port = strconv.Itoa(tcp.Port)
		switch {
		case !tcp.IP.IsUnspecified():
			host = tcp.IP.String()
		case tcp.IP.To4() != nil:
			host = "127.0.0.1"
		}
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// isLoopback reports whether only this machine reaches the address.
func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
