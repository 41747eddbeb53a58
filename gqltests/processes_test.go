package gqltests_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/testdb"
)

// process is a server process.
type process struct {
	url  string
	kill func() // -9
}

// startProcess starts a server process, which ends with the test.
func startProcess(t *testing.T, binary, database, tokenFile string) *process {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve", "--listen", "127.0.0.1:0", "--admin-token-file", tokenFile)
	command.Env = append(os.Environ(), "FLEETGRAPH_DATABASE_URL="+database)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	var once sync.Once
	kill := func() {
		once.Do(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
	}
	t.Cleanup(kill)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if url := address.FindString(lines.Text()); url != "" {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return &process{url, kill}
		}
	}
	require.Fail(t, "the server did not say where it is")
	return nil
}

// arrival is a machine that is to arrive, and where it is to come to rest.
type arrival struct {
	mac, position string
	document      json.RawMessage
}

// TestManyMachinesArriveAtSeveralProcessesOfWhichSomeAreKilled has 200 machines
// arrive at once at three processes, two of which are killed: one during the
// arrival, one after SKUs were created, while the jobs that follow run. Each machine
// ends where it belongs, once, with an unbroken history.
func TestManyMachinesArriveAtSeveralProcessesOfWhichSomeAreKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "fleetgraph")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/fleetgraph")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)

	l := &lab{bundle: &bundle{database: testdb.New(t), http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}}}
	t.Cleanup(l.http.CloseIdleConnections)
	tokenFile := filepath.Join(dir, "token")
	processes := []*process{startProcess(t, binary, l.database, tokenFile)}
	for range 2 {
		processes = append(processes, startProcess(t, binary, l.database, filepath.Join(dir, "none")))
	}
	l.url = processes[2].url // which lives
	secret, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	l.admin = strings.TrimSpace(string(secret))

	l.site = l.createSite(t, "dc1")
	sample := l.createSite(t, "sample")
	good := inventory(t, "composed/r760_9nvme.json")
	kind := func(model string) json.RawMessage {
		return edited(t, good, func(document map[string]any) {
			dmi, ok := document["dmi_data"].(map[string]any)
			require.True(t, ok)
			dmi["product_name"] = model
		})
	}
	components := func(n int, document json.RawMessage) map[string]any {
		m := l.report(t, sample, fmt.Sprintf("02:00:00:00:ff:%02x", n), fmt.Sprint("sample-", n), document)
		return l.generate(t, m.ID)
	}
	first, second, third := kind("First"), kind("Second"), kind("Third")
	firstSku, secondSku, thirdSku := components(1, first), components(2, second), components(3, third)
	l.newSku(t, l.site, "first", firstSku)
	const total = 200
	arrivals := make([]arrival, total)
	for i := range arrivals {
		mac := fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i)
		switch i % 4 {
		case 0:
			arrivals[i] = arrival{mac, "READY", first}
		case 1:
			arrivals[i] = arrival{mac, "WAITING_FOR_SKU_ASSIGNMENT", second}
		case 2:
			arrivals[i] = arrival{mac, "SKU_MISSING", third}
			l.expect(t, mac, "third")
		case 3:
			arrivals[i] = arrival{mac, "SKU_VERIFICATION_FAILED", without(t, first, 2)}
			l.expect(t, mac, "first")
		}
	}

	var reported atomic.Int64
	var all sync.WaitGroup
	queue := make(chan int, total)
	for i := range total {
		queue <- i
	}
	close(queue)
	for range 16 {
		all.Go(func() {
			for i := range queue {
				if err := l.arrive(t.Context(), processes, i, arrivals[i]); err != nil {
					t.Errorf("%s: %v", arrivals[i].mac, err)
				}
				if reported.Add(1) == total/3 {
					processes[0].kill()
				}
			}
		})
	}
	all.Wait()
	require.False(t, t.Failed())
	l.rest(t, arrivals)

	// SKUs are created for those that wait; another process is killed at once.
	l.url = processes[1].url
	for name, c := range map[string]map[string]any{"second": secondSku, "third": thirdSku} {
		l.must(t, createSku, variables{"input": variables{"siteId": l.site, "name": name, "components": c}}, nil)
	}
	processes[1].kill()
	l.url = processes[2].url
	for i := range arrivals {
		if i%4 == 1 || i%4 == 2 {
			arrivals[i].position = "UPDATING_INVENTORY"
		}
	}
	l.rest(t, arrivals)
	for i := range arrivals {
		if arrivals[i].position == "UPDATING_INVENTORY" {
			require.NoError(t, l.arrive(t.Context(), processes[2:], total+i, arrivals[i]))
			arrivals[i].position = "READY"
		}
	}
	l.rest(t, arrivals)

	conn := l.sql(t)
	for name, query := range map[string]string{
		"a number is missing": `SELECT count(*) FROM (SELECT sequence - lag(sequence, 1, 0) OVER w AS step, from_state, lag(to_state) OVER w AS was
			FROM (SELECT * FROM transitions WHERE subject_type = 'MACHINE') t WINDOW w AS (PARTITION BY subject_id ORDER BY sequence)) s WHERE step <> 1`,
		"a move does not begin where the last one ended": `SELECT count(*) FROM (SELECT from_state, lag(to_state) OVER w AS was, sequence
			FROM (SELECT * FROM transitions WHERE subject_type = 'MACHINE' AND to_state IS NOT NULL) t WINDOW w AS (PARTITION BY subject_id ORDER BY sequence)) s
			WHERE sequence > 1 AND from_state IS DISTINCT FROM was`,
		"a history does not end where its machine is": `SELECT count(*) FROM machines m WHERE m.state || coalesce('/' || m.sub_state, '') <>
			(SELECT to_state FROM transitions t WHERE t.subject_id = m.id AND to_state IS NOT NULL ORDER BY sequence DESC LIMIT 1)`,
		"something happened twice": `SELECT count(*) FROM (SELECT 1 FROM transitions t JOIN machines m ON m.id = t.subject_id JOIN sites s ON s.id = m.site_id
			WHERE s.name = 'dc1' AND cause IN ('DISCOVERED', 'INGESTED', 'SKU_MATCHED', 'SKU_MATCH_FOUND', 'SKU_AVAILABLE', 'SKU_VERIFIED', 'SKU_MISMATCH', 'SKU_MISSING', 'VALIDATION_NOT_AVAILABLE')
			GROUP BY subject_id, cause HAVING count(*) > 1) s`,
		"an alert has no reason, or stands twice": `SELECT count(*) FROM health_alerts a JOIN machines m ON m.id = a.machine_id WHERE m.sub_state IS DISTINCT FROM 'SKU_VERIFICATION_FAILED'`,
	} {
		var n int
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n), name)
		require.Zero(t, n, name)
	}
	require.Equal(t, total, l.count(t, `SELECT count(*) FROM machines WHERE site_id = $1`, l.site))
	require.Equal(t, total/4, l.count(t, `SELECT count(*) FROM health_alerts`))
}

// arrive reports a machine at one of the processes; after a lost answer, again at
// the next one, with the same key.
func (l *lab) arrive(ctx context.Context, processes []*process, n int, a arrival) error {
	body, err := json.Marshal(map[string]any{"query": reportInventory, "variables": variables{"input": variables{
		"siteId": l.site, "bmcMacAddress": a.mac, "inventory": a.document, "idempotencyKey": fmt.Sprint("arrival-", n),
	}}})
	if err != nil {
		return err
	}
	for try := range 50 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, processes[(n+try)%len(processes)].url+"/graphql", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+l.admin)
		response, err := l.http.Do(request)
		if err != nil {
			continue
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			continue
		}
		if bytes.Contains(content, []byte(`"errors"`)) {
			return fmt.Errorf("%s", content)
		}
		return nil
	}
	return errors.New("no process answered")
}

// rest waits until every machine is where it belongs.
func (l *lab) rest(t *testing.T, arrivals []arrival) {
	t.Helper()
	conn := l.sql(t)
	wrong := []string{}
	require.Eventually(t, func() bool {
		rows, err := conn.Query(t.Context(), `SELECT bmc_mac_address, coalesce(sub_state, state) FROM machines WHERE site_id = $1`, l.site)
		require.NoError(t, err)
		positions := map[string]string{}
		for rows.Next() {
			var mac, position string
			require.NoError(t, rows.Scan(&mac, &position))
			positions[mac] = position
		}
		require.NoError(t, rows.Err())
		wrong = wrong[:0]
		for _, a := range arrivals {
			if positions[a.mac] != a.position {
				wrong = append(wrong, a.mac+" is "+positions[a.mac]+", not "+a.position)
			}
		}
		return len(wrong) == 0
	}, 3*time.Minute, 100*time.Millisecond, "%v", &wrong)
}
