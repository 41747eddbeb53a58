// What the suites ask. Every document is valid against the product's schema and
// against the small one of the reference server.

export const WHO = "query Who { viewer { name role } }";

export const SITE = "query ($name: String!) { site(name: $name) { id name } }";

export const MACHINE = "query Machine($site: String!, $name: String!) { machine(site: $site, name: $name) { id name } }";

export const REPORT =
  "mutation Report($input: ReportInventoryInput!) { reportInventory(input: $input) { machine { id name } } }";

export const RAISE = "mutation Raise($input: RaiseHealthAlertInput!) { raiseHealthAlert(input: $input) { healthAlert { id alertId } } }";

export const CLEAR = "mutation Clear($input: ClearHealthAlertInput!) { clearHealthAlert(input: $input) { machine { id name } } }";

export const DELETE = "mutation Delete($input: DeleteMachineInput!) { deleteMachine(input: $input) { deletedMachineId } }";

export const MACHINE_EVENTS = `
  subscription MachineEvents($id: ID!, $after: Cursor) {
    machine(id: $id, after: $after) {
      __typename
      ... on MachineSnapshot { machine { id name } cursor }
      ... on MachineChange { transition { id cause message } now: machine { id name } cursor }
      ... on MachineEnd { transition { id cause message } cursor }
    }
  }`;

export const SITE_EVENTS = `
  subscription SiteEvents($site: String!, $after: Cursor) {
    siteEvents(site: $site, after: $after) { transition { id cause message machine { id name } } cursor }
  }`;
