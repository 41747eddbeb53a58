export const viewerQuery = "query Viewer { viewer { name role } }";

export const firstQuery = `# Every machine with its site, SKU and alerts.
# Ctrl+Enter runs it, Ctrl+Space completes.
query Machines {
  machines(first: 50, orderBy: { field: NAME }) {
    totalCount
    edges {
      node {
        name
        state
        subState
        vendor
        model
        site { name }
        sku { name }
        healthAlerts(first: 5) {
          edges { node { alertId message } }
        }
      }
    }
  }
}
`;
