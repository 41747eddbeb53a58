package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxDuration is the longest duration that is accepted anywhere: 100 years would
// overflow nothing, but means a mistake.
const MaxDuration = 36500 * 24 * time.Hour

// ParseDuration reads Go's form of a duration plus a leading number of days, such
// as 90s, 1h30m, 30d or 1d12h. Signs, blanks and durations beyond MaxDuration are
// refused; 0 needs a unit as well.
func ParseDuration(s string) (time.Duration, error) {
	rest, total := s, time.Duration(0)
	if days, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || time.Duration(n)*24*time.Hour > MaxDuration {
			return 0, fmt.Errorf("%s is not a duration such as 90s, 24h or 30d", Quoted(s))
		}
		total, rest = time.Duration(n)*24*time.Hour, after
		if rest == "" {
			return total, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || strings.ContainsAny(rest[:1], "+-") || rest == "0" || d > MaxDuration-total {
		return 0, fmt.Errorf("%s is not a duration such as 90s, 24h or 30d", Quoted(s))
	}
	return total + d, nil
}

// FormatDuration writes d in the form that ParseDuration reads, with days where d
// is a whole number of them.
func FormatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
