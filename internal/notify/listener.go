// Package notify tells followers what is new: a listener for the hints that Postgres
// passes between processes, and a hub that hands events to any number of followers.
//
// What it never does: promise delivery. A hint may be lost and a follower may fall
// behind; both then read the table, which is the truth.
package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgxlisten"
)

// reconnectDelay is how long after a lost connection the next is opened.
const reconnectDelay = time.Second

// Listen calls heard after every notification on a channel, and whenever a
// connection has been opened, since anything may have been sent before. It returns
// when ctx ends. heard must not block.
func Listen(ctx context.Context, connect func(context.Context) (*pgx.Conn, error), channel string, heard func(), logger *slog.Logger) {
	listener := &pgxlisten.Listener{
		Connect: connect,
		LogError: func(ctx context.Context, err error) {
			if ctx.Err() == nil {
				logger.WarnContext(ctx, "not listening to other processes for now", slog.Any("err", err))
			}
		},
		ReconnectDelay: reconnectDelay,
	}
	listener.Handle(channel, hearing(heard))
	_ = listener.Listen(ctx) // ctx's own error
}

// hearing is a handler that takes every message for a hint.
type hearing func()

// HandleNotification is called for a notification.
func (h hearing) HandleNotification(context.Context, *pgconn.Notification, *pgx.Conn) error {
	h()
	return nil
}

// HandleBacklog is called for a fresh connection.
func (h hearing) HandleBacklog(context.Context, string, *pgx.Conn) error {
	h()
	return nil
}
