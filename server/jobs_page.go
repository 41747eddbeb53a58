package server

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"riverqueue.com/riverui"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// jobsPath is where the job queue can be looked at.
const jobsPath = "/jobs"

// jobsPolicy lets the page use what it brings, and nothing from elsewhere.
const jobsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// newJobsPage is River's page over the job queue, until ctx ends.
func newJobsPage(ctx context.Context, r *runner, logger *slog.Logger) (http.Handler, error) {
	page, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(r.client, nil), Logger: slog.New(quiet{logger.Handler()}), Prefix: jobsPath,
	})
	if err != nil {
		return nil, fmt.Errorf("the jobs page: %w", err)
	}
	if err := page.Start(ctx); err != nil {
		return nil, fmt.Errorf("the jobs page: %w", err)
	}
	files, err := fs.Sub(riverui.FrontendIndex, "dist")
	if err != nil {
		return nil, fmt.Errorf("the jobs page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	// River serves its icon as a text, which a browser that is told not to guess does
	// not show.
	mux.Handle("GET "+jobsPath+"/icon.svg", http.StripPrefix(jobsPath, http.FileServerFS(files)))
	return mux, nil
}

// changesJobs tells by its method whether a request changes jobs.
func changesJobs(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, jobsPath+"/") && r.Method != http.MethodGet && r.Method != http.MethodHead
}

// administered lets admins of all sites through: by bearer token, or in a browser by
// HTTP's basic authentication with the token as the password, whatever the user name.
// A browser sends that along by itself, so what changes something must come from the
// page's own origin.
func administered(auth authenticator, p presenter, next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused := fleet.Denied("CROSS_ORIGIN", "jobs are changed from this server's own page only")
		noteError(r.Context(), refused)
		writeError(w, statusOf(refused.Code), refused)
	}))
	guarded := origin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		headers := r.Header.Values("Authorization")
		if _, password, ok := r.BasicAuth(); ok && len(headers) == 1 {
			headers = []string{"Bearer " + password}
		}
		caller, err := authenticate(ctx, auth, headers)
		if err == nil {
			noteCaller(ctx, caller)
			err = administers(access.WithCaller(ctx, caller))
		}
		if err != nil {
			p.refuseAs(w, r, err, `Basic realm="fleetgraph jobs; the password is an admin's token", charset="UTF-8"`)
			return
		}
		w.Header().Set("Content-Security-Policy", jobsPolicy)
		if strings.HasPrefix(r.URL.Path, jobsPath+"/assets/") {
			w.Header().Set("Cache-Control", "private, max-age=3600")
		}
		guarded.ServeHTTP(w, r.WithContext(access.WithCaller(ctx, caller)))
	})
}

func administers(ctx context.Context) error {
	caller, err := access.Require(ctx, fleet.RoleAdmin)
	if err == nil && !caller.AllSites {
		return fleet.Denied("SITES_TOO_NARROW", "the jobs are of all sites; the token is bound to some")
	}
	return err
}
