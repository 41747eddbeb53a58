package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/census"
)

const (
	// censusTimeout bounds the counting of one scrape.
	censusTimeout = 5 * time.Second
	// censusFor is how long the counts are given again, so that scrapes cannot load the
	// database.
	censusFor = 2 * time.Second
)

// newMetrics exposes the process, its sockets and the fleet in Prometheus' text form.
func newMetrics(pool *pgxpool.Pool, sockets func() (connections, operations int), logger *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		poolCollector{pool}, socketCollector{sockets}, &fleetCollector{pool: pool, logger: logger, now: time.Now},
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, Registry: registry,
	})
}

// scraped lets a scrape from this machine through, and else a viewer of all sites:
// what stands where is nobody else's business. A request that came through a proxy
// comes from wherever the proxy let it in.
func scraped(auth authenticator, p presenter, next http.Handler) http.Handler {
	signed := signedIn(auth, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := access.Require(r.Context(), fleet.RoleViewer)
		if err == nil && !caller.AllSites {
			err = fleet.Denied("SITES_TOO_NARROW", "the metrics are of all sites; the token is bound to some")
		}
		if err != nil {
			p.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromHere(r) {
			next.ServeHTTP(w, r)
			return
		}
		signed.ServeHTTP(w, r)
	})
}

// fromHere tells whether a request comes from this machine, and on nobody's behalf: a
// proxy adds a header, which counts however empty, since some proxies add another line
// to what a client sent. A Host that is not this machine's is that of a page elsewhere
// whose name was made to lead here.
func fromHere(r *http.Request) bool {
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} {
		if len(r.Header.Values(header)) > 0 {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && net.ParseIP(host).IsLoopback() && namesThisMachine(r.Host)
}

// namesThisMachine tells whether a Host header is localhost or a loopback address.
func namesThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// poolCollector tells how the database connections are used.
type poolCollector struct{ pool *pgxpool.Pool }

func poolMetrics() map[string]*prometheus.Desc {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return map[string]*prometheus.Desc{
		"max":      desc("fleetgraph_database_connections_max", "Size of the pool of database connections."),
		"open":     desc("fleetgraph_database_connections_open", "Open database connections."),
		"acquired": desc("fleetgraph_database_connections_acquired", "Database connections in use."),
		"waits":    desc("fleetgraph_database_connection_waits_total", "Acquisitions of a database connection that had to wait."),
	}
}

// Describe lists the metrics.
func (poolCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range poolMetrics() {
		to <- d
	}
}

// Collect reads them.
func (c poolCollector) Collect(to chan<- prometheus.Metric) {
	stat, metrics := c.pool.Stat(), poolMetrics()
	gauge := func(name string, value int32) {
		to <- prometheus.MustNewConstMetric(metrics[name], prometheus.GaugeValue, float64(value))
	}
	gauge("max", stat.MaxConns())
	gauge("open", stat.TotalConns())
	gauge("acquired", stat.AcquiredConns())
	to <- prometheus.MustNewConstMetric(metrics["waits"], prometheus.CounterValue, float64(stat.EmptyAcquireCount()))
}

// socketCollector tells how many WebSockets there are.
type socketCollector struct {
	open func() (connections, operations int)
}

func socketMetrics() (connections, operations *prometheus.Desc) {
	return prometheus.NewDesc("fleetgraph_websockets_open", "Open WebSockets.", nil, nil),
		prometheus.NewDesc("fleetgraph_websocket_operations", "Operations that are alive on WebSockets.", nil, nil)
}

// Describe lists the metrics.
func (socketCollector) Describe(to chan<- *prometheus.Desc) {
	connections, operations := socketMetrics()
	to <- connections
	to <- operations
}

// Collect reads them.
func (c socketCollector) Collect(to chan<- prometheus.Metric) {
	connections, operations := socketMetrics()
	open, alive := c.open()
	to <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(open))
	to <- prometheus.MustNewConstMetric(operations, prometheus.GaugeValue, float64(alive))
}

// fleetCollector counts the fleet, at most once in a while.
type fleetCollector struct {
	pool   *pgxpool.Pool
	logger *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	last census.Figures
	err  error // why there is no last
	at   time.Time
}

// The metrics of the fleet. Names that begin with carbide are those of the
// specification, whose labels they keep, plus the site.
type fleetMetrics struct{ hosts, expected, states, oldest, jobs, openJobs, oldestJob *prometheus.Desc }

func describeFleet() fleetMetrics {
	return fleetMetrics{
		hosts: prometheus.NewDesc("carbide_hosts_by_sku_count",
			"Number of hosts by SKU and device type (unknown for hosts without SKU).", []string{"sku", "device_type", "fresh", "site"}, nil),
		expected: prometheus.NewDesc("carbide_site_exploration_expected_machines_sku_count",
			"Number of expected machines by SKU and device type (unknown for those without SKU).", []string{"sku_id", "device_type", "site"}, nil),
		states: prometheus.NewDesc("carbide_machines_per_state",
			"Number of machines by state and sub-state.", []string{"state", "substate", "fresh", "site"}, nil),
		oldest: prometheus.NewDesc("fleetgraph_machines_oldest_in_state_seconds",
			"How long the machine has been in its state that is longest in it.", []string{"state", "substate", "site"}, nil),
		jobs: prometheus.NewDesc("fleetgraph_jobs",
			"Number of jobs of the job queue that have not ended well, by kind and state.", []string{"kind", "state"}, nil),
		openJobs: prometheus.NewDesc("fleetgraph_submitted_jobs_open",
			"Number of jobs that people submitted and that have not ended.", []string{"kind", "state", "site"}, nil),
		oldestJob: prometheus.NewDesc("fleetgraph_submitted_jobs_oldest_seconds",
			"How long ago the job was submitted that waits longest for its end.", []string{"kind", "state", "site"}, nil),
	}
}

// Describe lists the metrics.
func (*fleetCollector) Describe(to chan<- *prometheus.Desc) {
	m := describeFleet()
	for _, d := range []*prometheus.Desc{m.hosts, m.expected, m.states, m.oldest, m.jobs, m.openJobs, m.oldestJob} {
		to <- d
	}
}

// Collect counts.
func (c *fleetCollector) Collect(to chan<- prometheus.Metric) {
	m := describeFleet()
	figures, err := c.figures()
	if err != nil {
		c.logger.Warn("the fleet could not be counted", slog.Any("err", err))
		to <- prometheus.NewInvalidMetric(m.hosts, err)
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metric, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...)
		if err != nil { // a name that is no UTF-8, from a database of another encoding
			metric = prometheus.NewInvalidMetric(d, err)
		}
		to <- metric
	}
	const fresh = "true" // the figures are those of now
	for _, s := range figures.Hosts {
		gauge(m.hosts, float64(s.Count), s.Sku, s.DeviceType, fresh, s.Site)
	}
	for _, s := range figures.Expected {
		gauge(m.expected, float64(s.Count), s.Sku, s.DeviceType, s.Site)
	}
	for _, s := range figures.States {
		gauge(m.states, float64(s.Count), s.State, s.SubState, fresh, s.Site)
		gauge(m.oldest, s.Oldest.Seconds(), s.State, s.SubState, s.Site)
	}
	for _, j := range figures.Jobs {
		gauge(m.jobs, float64(j.Count), j.Kind, j.State)
	}
	for _, j := range figures.Open {
		gauge(m.openJobs, float64(j.Count), j.Kind, j.State, j.Site)
		gauge(m.oldestJob, j.Oldest.Seconds(), j.Kind, j.State, j.Site)
	}
}

// figures counts, or returns what was counted shortly before. A failure is kept as
// long: a database that does not answer is not asked by every scrape.
func (c *fleetCollector) figures() (census.Figures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && c.now().Sub(c.at) < censusFor {
		return c.last, c.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), censusTimeout)
	defer cancel()
	c.last, c.err = census.Take(ctx, c.pool)
	c.at = c.now()
	return c.last, c.err
}
