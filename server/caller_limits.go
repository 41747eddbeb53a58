package server

// CallerLimits are what one caller may have at one time, of one server process: all
// that use one token are one caller. Zero means the default.
type CallerLimits struct {
	Streams     int   // WebSockets and streams of server-sent events
	AnswerBytes int64 // of answers that are made or wait for their readers; 64 KiB of each do not count
}

// DefaultCallerLimits are the limits of a server that was told nothing else.
func DefaultCallerLimits() CallerLimits {
	return CallerLimits{Streams: 5000, AnswerBytes: 64 << 20}
}

func (l CallerLimits) withDefaults() CallerLimits {
	d := DefaultCallerLimits()
	orDefault(&l.Streams, d.Streams)
	orDefault(&l.AnswerBytes, d.AnswerBytes)
	return l
}
