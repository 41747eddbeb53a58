package graphqlws

import (
	"sync"

	"fleetgraph/internal/tally"
)

// lobby counts who is in, before their handshake is answered: a request that is
// refused costs no connection. Who has no session yet takes one of a smaller number of
// places, so that strangers, who need nothing to come, do not take those of others.
type lobby struct {
	most, strangers int
	unopened        *tally.Tally // by the name of the peer

	mu      sync.Mutex
	inside  int
	unknown int // strangers without a session
	closed  bool
	empty   chan struct{} // closed when the lobby is and nobody is inside
}

func newLobby(l Limits) *lobby {
	return &lobby{
		most: l.Connections, strangers: l.Strangers, unopened: tally.New(int64(l.Unopened)),
		empty: make(chan struct{}),
	}
}

// Peer is who asks for a WebSocket.
type Peer struct {
	Name  string
	Known bool // by more than where they are
}

// place is that of one who is in.
type place struct {
	lobby  *lobby
	peer   Peer
	opened sync.Once
}

// enter gives a place, which is taken until leave.
func (l *lobby) enter(peer Peer) (*place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrStopping
	case l.inside >= l.most, !peer.Known && l.unknown >= l.strangers, !l.unopened.Take(peer.Name, 1):
		return nil, ErrFull
	}
	l.inside++
	if !peer.Known {
		l.unknown++
	}
	return &place{lobby: l, peer: peer}, nil
}

// open tells that there is a session.
func (p *place) open() {
	p.opened.Do(func() {
		p.lobby.unopened.Give(p.peer.Name, 1)
		p.lobby.mu.Lock()
		defer p.lobby.mu.Unlock()
		if !p.peer.Known {
			p.lobby.unknown--
		}
	})
}

// leave gives the place back.
func (p *place) leave() {
	p.open()
	l := p.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	l.emptied()
}

// close lets nobody in from now on; empty is closed when the last one has left.
func (l *lobby) close() (empty <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.emptied()
	}
	return l.empty
}

func (l *lobby) closing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *lobby) emptied() {
	if l.closed && l.inside == 0 {
		close(l.empty)
	}
}
